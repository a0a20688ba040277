"""Endpoints: their secrets, rotation with an overlap, and the window for deliveries that do not verify."""

from __future__ import annotations

from datetime import timedelta

import pytest

from connectors import secrets
from connectors.configuration import endpoints, packs, stored_secrets
from connectors.configuration.change import NotFound
from connectors.configuration.endpoints import EndpointDraft, EndpointRefused
from connectors.configuration.stored_secrets import Secret, SecretRefused
from connectors.models import AuditEntry, Endpoint
from projection.database import clock

ACTOR = "test"
A, B, C = (Secret(letter * 40) for letter in "abc")


@pytest.fixture
def github(database):
    return packs.install("default", "github", actor=ACTOR)


def create(**options) -> Endpoint:
    return endpoints.create("default", EndpointDraft("github", "repo", **({"secrets": (A,)} | options)), actor=ACTOR)


def live() -> list[str]:
    return secrets.live(Endpoint.objects.get().secrets, clock.now())


def rotate(secret: Secret, **options):
    return endpoints.rotate("default", "repo", secret, actor=ACTOR, **options)


def test_a_new_endpoint_keeps_unverified_deliveries_for_a_day(github):
    endpoint = create()
    assert endpoint.unverified_until - endpoint.created_at == timedelta(hours=24)
    assert live() == [A.value]
    assert A.value not in Endpoint.objects.get().secrets


def test_a_slug_in_use_is_refused(github):
    create()
    with pytest.raises(EndpointRefused, match="already exists"):
        create()


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"secrets": ()}, EndpointRefused, "needs a secret"),
        ({"secrets": None}, EndpointRefused, "needs a secret"),
        ({"secrets": (A, B, C)}, SecretRefused, "at most 2"),
        ({"secrets": (Secret(" "),)}, SecretRefused, "a secret of endpoint 'repo' is refused"),
        ({"signature": "hubspot"}, EndpointRefused, "checks deliveries by .*, not hubspot"),
    ],
)
def test_an_endpoint_that_could_not_verify_is_refused(github, options, error, sentence):
    with pytest.raises(error, match=sentence):
        create(**options)
    assert Endpoint.objects.count() == 0


def test_rotation_keeps_the_old_secret_live_for_the_overlap_and_opens_the_window(github):
    create()
    before = clock.now()
    done = rotate(B)
    endpoint = Endpoint.objects.get()
    assert live() == [B.value, A.value]
    assert timedelta(hours=24) <= done.old_ends_at - before < timedelta(hours=24, minutes=1)
    assert endpoint.unverified_until - endpoint.rotated_at == timedelta(hours=24)
    assert secrets.live(endpoint.secrets, done.old_ends_at + timedelta(seconds=1)) == [B.value]


def test_a_second_rotation_within_the_overlap_leaves_two_live_and_says_so(github):
    create()
    rotate(B)
    done = rotate(C)
    assert live() == [C.value, B.value]
    assert done.stopped_at_once == 1


def test_rotation_without_overlap_stops_the_old_secret_at_once(github):
    create()
    done = rotate(B, overlap=timedelta(0))
    assert live() == [B.value]
    assert (done.old_ends_at, done.stopped_at_once) == (None, 0)


def test_rotating_to_the_secret_in_force_is_refused(github):
    create()
    with pytest.raises(SecretRefused, match="already active"):
        rotate(A)


def test_going_back_to_the_secret_that_was_replaced_is_a_rotation(github):
    create()
    rotate(B)
    rotate(A)
    assert live() == [A.value, B.value]


def test_configuration_that_lists_the_secret_in_force_leaves_the_overlap_alone(github):
    create()
    rotate(B)
    draft = EndpointDraft("github", "repo", secrets=(B,))
    assert endpoints.change("default", draft, actor=ACTOR) == ()
    assert live() == [B.value, A.value]


def test_configuration_that_lists_others_makes_exactly_them_live(github):
    create()
    rotate(B)
    draft = EndpointDraft("github", "repo", secrets=(C,), public_url="https://h")
    assert endpoints.change("default", draft, actor=ACTOR) == ("public_url:  → https://h", "secrets: replaced")
    assert live() == [C.value]


def test_an_unknown_endpoint_is_named(github):
    create()
    with pytest.raises(NotFound, match="no endpoint 'other' in namespace 'default'; known: repo"):
        endpoints.rotate("default", "other", B, actor=ACTOR)


def test_audit_entries_and_representations_never_hold_a_secret(github):
    create()
    rotate(B)
    texts = [f"{entry.target} {entry.reason} {entry.detail}" for entry in AuditEntry.objects.all()]
    texts.append(repr(EndpointDraft("github", "repo", secrets=(A,))))
    assert len(texts) == 4
    assert not any(A.value in text or B.value in text for text in texts)


def test_a_generated_secret_is_taken_by_every_scheme_that_a_sender_may_choose(database):
    for name in ("github", "standard_webhooks", "generic"):
        packs.install("default", name, actor=ACTOR)
        draft = EndpointDraft(name, f"{name}-in", (stored_secrets.generated(),))
        assert endpoints.create("default", draft, actor=ACTOR).id
