"""Every provider sample splits into exact slices and reads as the mapping says."""

from __future__ import annotations

import pytest

from connectors import pack
from connectors.delivery import Headers, Inbound, IngressRequest, Item
from connectors.pack import Pack
from projection import exact_json
from tests.support import samples
from tests.support.samples import Sample

PROVIDERS = {"github": "github", "hubspot": "hubspot", "standard-webhooks": "standard_webhooks"}
ALL = [(provider, sample) for provider in PROVIDERS for sample in samples.samples(provider)]
IDS = [f"{provider}/{sample.name}" for provider, sample in ALL]

pytestmark = samples.needs_samples


def read(provider: str, sample: Sample) -> tuple[Pack, list[tuple[Item, Inbound]]]:
    cls = pack.find(PROVIDERS[provider])
    assert cls is not None
    one = cls()
    # Samples that were collected without transport headers get the ones that every real delivery has.
    headers = {"x-github-delivery": f"guid-{sample.name}", "webhook-id": f"msg_{sample.name}"} | sample.headers
    items = one.split_request(IngressRequest("POST", "https://hooks.example.com/x", Headers(headers), sample.body))
    found = [(item, one.read(item)) for item in items]
    return one, [(item, inbound) for item, inbound in found if isinstance(inbound, Inbound)]


@pytest.mark.parametrize(("provider", "sample"), ALL, ids=IDS)
def test_a_sample_splits_into_exact_slices(provider: str, sample: Sample) -> None:
    _, found = read(provider, sample)
    expected = sample.value if isinstance(sample.value, list) else [sample.value]
    assert len(found) == len(expected)
    for (item, _), value in zip(found, expected, strict=True):
        assert item.text.encode() in sample.body
        assert exact_json.parse(item.text) == value


@pytest.mark.parametrize(("provider", "sample"), ALL, ids=IDS)
def test_a_sample_names_kind_source_and_lane(provider: str, sample: Sample) -> None:
    one, found = read(provider, sample)
    for item, inbound in found:
        kind, (source_type, source_id) = inbound.kind, inbound.source
        assert kind
        assert source_type
        assert source_id
        lane = inbound.lane or ()
        assert not lane or str(source_id).split("@")[0].endswith(str(lane[-1]))
        one.change(kind, item.value)


def test_github_kinds_follow_event_and_action() -> None:
    for sample in samples.samples("github"):
        _, [(_, inbound)] = read("github", sample)
        event, action = sample.headers["x-github-event"], sample.value.get("action")
        assert inbound.kind == (f"{event}.{action}" if action else event)
        assert inbound.delivery_id == sample.headers.get("x-github-delivery", f"guid-{sample.name}")


def test_the_changes_of_one_pull_request_share_its_lane() -> None:
    lanes = {
        read("github", sample)[1][0][1].lane for sample in samples.samples("github") if sample.name.startswith("pull_request.")
    }
    assert lanes == {("186853002", "pull_request", "279147437")}


def test_the_hubspot_samples_have_each_event_once() -> None:
    found = {sample.name: read("hubspot", sample)[1] for sample in samples.samples("hubspot")}
    batch = {inbound.delivery_id for _, inbound in found["real.batch13"]}
    single = {inbound.delivery_id for name, pairs in found.items() if name.startswith("real.") for _, inbound in pairs}
    assert len(batch) == 13
    assert single == batch
    same_event_id = [inbound.delivery_id for _, inbound in found["amplabs.two_events_same_eventId"]]
    assert len(set(same_event_id)) == 2
    assert all("None" not in str(one) for one in same_event_id)


def test_a_retry_of_hubspot_is_the_same_event() -> None:
    (sample,) = [one for one in samples.samples("hubspot") if one.name == "djhubspot.attempt3"]
    again = Sample(sample.name, sample.headers, sample.body.replace(b'"attemptNumber": 3', b'"attemptNumber": 4'), sample.value)
    assert again.body != sample.body
    assert read("hubspot", again)[1][0][1].delivery_id == read("hubspot", sample)[1][0][1].delivery_id


def test_workflow_objects_are_a_kind_of_their_own() -> None:
    kinds = {
        sample.name: read("hubspot", sample)[1][0][1]
        for sample in samples.samples("hubspot")
        if sample.name.startswith("workflow.")
    }
    assert (kinds["workflow.CONTACT"].kind, kinds["workflow.CONTACT"].source) == ("workflow.contact", ("contact", "251"))
    assert (kinds["workflow.DEAL"].kind, kinds["workflow.DEAL"].lane) == ("workflow.deal", ("27145807", "deal", "7036839888"))
    ids = [inbound.delivery_id or "" for inbound in kinds.values()]
    assert all(one.startswith("workflow:27145807:") for one in ids)


def test_a_workflow_object_is_known_again_by_its_correlation_id_only() -> None:
    (sample,) = [one for one in samples.samples("hubspot") if one.name == "workflow.CONTACT"]
    anonymous = {name: value for name, value in sample.headers.items() if name != "x-hubspot-correlation-id"}
    later = sample.headers | {"x-hubspot-correlation-id": "another"}
    first, again, other, none = (
        read("hubspot", Sample(sample.name, headers, sample.body, sample.value))[1][0][1].delivery_id
        for headers in (sample.headers, dict(sample.headers), later, anonymous)
    )
    assert first == again
    assert first not in (None, other)
    assert none is None
