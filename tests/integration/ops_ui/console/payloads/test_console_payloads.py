"""Stored texts in the console: exact, masked in every way, searched on the server, revealed with an entry, bounded where they are long."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from connectors.configuration import routes
from connectors.models import AuditEntry, Receipt, Route, UnverifiedDelivery
from ops_ui.console.payloads import reads as payload_reads
from ops_ui.console.payloads import view as payload_view
from ops_ui.console.payloads import window as payload_window
from projection.models import Event
from tests.integration.ops_ui.console.test_console_pages import Markup
from tests.support import console_world, factories, rows

pytestmark = pytest.mark.usefixtures("database")

EXACT = '{"n":1.0,"big":12345678901234567890,"a":1,"a":"two","e":1E400,"mail":"ada@example.com","deep":[{"mail":"b@example.com"}]}'
SECRETS = (b"ada@example.com", b"b@example.com", b"ada", b"b@ex")


@pytest.fixture
def pack(database: None) -> factories.models.Pack:
    return factories.install()


def event_of(pack: factories.models.Pack, payload: str = EXACT, masks: tuple[str, ...] = ()) -> Event:
    facts = factories.route(pack, "contact", mode="projection", masks=masks)
    return rows.event_row(facts, payload=payload)


def receipt_of(pack: factories.models.Pack, body: str | bytes, masks: tuple[str, ...] = ()) -> Receipt:
    factories.route(pack, "contact", mode="projection", masks=masks)
    return factories.receipt(pack, body, state="routed")


def lines(client: Client, path: str, **parameters: object) -> list[str]:
    """The text of each line that a page shows."""
    response = client.get(path, parameters)
    assert response.status_code == 200
    html = response.content.decode()
    start = html.index('<div class="lines')
    texts = re.findall(r'<span class="line-text">(.*?)</span>\s*</div>', html[start : html.index("</main>", start)], re.DOTALL)
    return [Markup(text).text for text in texts]


def page_of(one: Event | Receipt) -> str:
    return f"/admin/{'events' if isinstance(one, Event) else 'receipts'}/{one.id}/"


def after(html: str, rel: str) -> dict[str, str]:
    """The parameters of the page's link of this relation; empty: there is none."""
    found = [attributes for tag, attributes in Markup(html).elements if tag == "a" and attributes.get("rel") == rel]
    return {name: values[0] for name, values in parse_qs(urlsplit(str(found[0]["href"])).query).items()} if found else {}


# ---- exact


def test_json_is_laid_out_and_each_token_is_as_it_was_sent(pack: factories.models.Pack) -> None:
    shown = "\n".join(line for line in lines(console_world.client("viewer"), page_of(event_of(pack))))
    assert '"n":1.0,' in shown
    assert '"big":12345678901234567890,' in shown
    assert '"a":1,\n  "a":"two",\n  "e":1E400,' in shown
    assert "".join(part.strip() for part in shown.split("\n")) == EXACT


def test_the_text_as_it_was_sent_is_a_switch_away(pack: factories.models.Pack) -> None:
    client, path = console_world.client("viewer"), page_of(event_of(pack))
    (line,) = lines(client, path, **{"as": "sent"})
    assert line == EXACT


def test_what_is_no_json_is_shown_by_its_own_lines(pack: factories.models.Pack) -> None:
    client = console_world.client("viewer")
    html = client.get(page_of(receipt_of(pack, b"a=1\nb=\xff\x00")))
    assert "not UTF-8" in html.content.decode()
    assert 'b=\\xff<bdi class="control" data-code="U+0000">' in html.content.decode()
    assert "Formatted" not in html.content.decode()


def test_hostile_text_and_its_direction_stay_in_their_place(pack: factories.models.Pack) -> None:
    hostile = json.dumps({console_world.HOSTILE: console_world.HOSTILE, "name": "שלום \u202e\u2066"}, ensure_ascii=False)
    client, path = console_world.client("viewer"), page_of(event_of(pack, hostile))
    for parameters in ({"as": "sent"}, {}, {"find": console_world.HOSTILE}):
        found = Markup(client.get(path, parameters).content.decode())
        assert not any(tag == "img" and attributes.get("src") == "x" for tag, attributes in found.elements)
        assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
        marked = [attributes["data-code"] for _, attributes in found.elements if attributes.get("class") == "control"]
        assert {"U+202E", "U+2066"} <= set(marked)
        assert "שלום" in found.text


# ---- search


def test_a_search_counts_marks_and_leads_to_the_next_hit(pack: factories.models.Pack) -> None:
    client, path = console_world.client("viewer"), page_of(event_of(pack))
    html = client.get(path, {"find": "EXAMPLE.com"}).content.decode()
    assert "Match 1 of 2" in " ".join(html.split())
    assert html.count('<mark class="hit') == 2
    assert html.count('id="hit"') == 1
    following = client.get(path, after(html, "next")).content.decode()
    assert "Match 2 of 2" in " ".join(following.split())
    assert after(following, "next") == {}
    assert after(following, "prev")["hit"] == "1"


def test_a_search_without_a_hit_says_so(pack: factories.models.Pack) -> None:
    html = console_world.client("viewer").get(page_of(event_of(pack)), {"find": "nowhere"}).content.decode()
    assert "No match" in html


@pytest.mark.parametrize(
    "damaged",
    [
        {"at": "-1"},
        {"at": "x"},
        {"at": "9" * 40},
        {"hit": "0", "find": "a"},
        {"hit": "999999", "find": "a"},
        {"part": f"{9**12}-1"},
        {"part": "1"},
        {"part": "x-1"},
        {"as": "no"},
        {"at": "99999999"},
    ],
)
def test_damaged_parameters_give_a_page(pack: factories.models.Pack, damaged: dict[str, str]) -> None:
    assert console_world.client("viewer").get(page_of(event_of(pack)), damaged).status_code == 200


def test_a_search_never_finds_what_is_masked(pack: factories.models.Pack) -> None:
    event, receipt = event_of(pack, masks=("$.mail", "$.deep")), factories.receipt(pack, f"[{EXACT}]", state="routed")
    unverified = UnverifiedDelivery.objects.create(
        endpoint_id=factories.endpoint(pack).id,
        body=EXACT.encode(),
        body_sha256="0" * 64,
        headers="{}",
        reason="r",
        received_at=receipt.received_at,
    )
    client = console_world.client("administrator")
    for path in (page_of(event), page_of(receipt), f"/admin/unverified/{unverified.id}/"):
        for parameters in ({}, {"as": "sent"}, {"find": "ample.co"}, {"find": "•••"}):
            content = client.get(path, parameters).content
            assert not any(secret in content for secret in SECRETS), (path, parameters)
        assert "No match" in client.get(path, {"find": "ample.co"}).content.decode()
        assert "of 2" in " ".join(client.get(path, {"find": "•••"}).content.decode().split())


def test_no_hash_is_told_that_a_guess_could_be_tried_on(pack: factories.models.Pack) -> None:
    masks = ("$.mail",)
    event = event_of(pack, masks=masks)
    receipt = factories.receipt(pack, EXACT, state="routed")
    digests = (event.payload_sha256.encode(), receipt.body_sha256.encode())
    exports = ("/admin/events/?export=csv", "/admin/events/?export=json", "/admin/receipts/?export=json")
    viewer, administrator = console_world.client("viewer"), console_world.client("administrator")

    def told(client: Client, path: str) -> bool:
        response: Any = client.get(path)
        content = b"".join(response.streaming_content) if response.streaming else response.content
        return any(digest in content for digest in digests)

    for path in (page_of(event), page_of(receipt), *exports):
        assert not told(viewer, path), path
        assert told(administrator, path), path
    Route.objects.update(masks="[]")
    Event.objects.filter(id=event.id).update(route_snapshot=None)
    for path in (page_of(event), page_of(receipt), *exports):
        assert told(viewer, path), path


def test_masks_that_came_after_an_event_hold_when_its_route_is_retired(pack: factories.models.Pack) -> None:
    event = event_of(pack)
    factories.route(pack, "contact", mode="projection", version=2, masks=("$.mail", "$.deep"))
    client = console_world.client("viewer")
    assert b"ada@" not in client.get(page_of(event)).content
    routes.retire("default", "contact", actor="test")
    for path in (page_of(event), f"{page_of(event)}payload"):
        content = client.get(path).content
        assert "•••".encode() in content
        assert not any(secret in content for secret in SECRETS), path


def test_a_text_whose_masks_cannot_be_read_is_hidden_whole(pack: factories.models.Pack) -> None:
    html = (
        console_world.client("viewer").get(page_of(receipt_of(pack, "mail=ada@example.com", ("$.mail",))), {"find": "ada@"}).content
    )
    assert b"ada@example.com" not in html
    assert b"No match" in html


# ---- downloads


def test_a_download_is_exact_or_masked_and_never_rendered(pack: factories.models.Pack) -> None:
    client = console_world.client("viewer")
    open_one = factories.receipt(pack, b"\xef\xbb\xbf" + EXACT.encode())
    response = client.get(f"{page_of(open_one)}body")
    assert response.content == b"\xef\xbb\xbf" + EXACT.encode()
    masked = event_of(pack, masks=("$.mail", "$.deep"))
    hidden = client.get(f"{page_of(masked)}payload")
    assert hidden.content.decode() == EXACT.replace('"ada@example.com"', "•••").replace('[{"mail":"b@example.com"}]', "•••")
    for one, name in ((response, f"receipt-{open_one.id}.body"), (hidden, f"event-{masked.id}.json")):
        assert one.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        assert one.headers["Content-Type"] == "application/octet-stream"
        assert one.headers["X-Content-Type-Options"] == "nosniff"


# ---- reveal


def reveal(client: Client, one: Event | Receipt, **form: str) -> object:
    return client.post(f"{page_of(one)}reveal/", form)


def test_an_administrator_sees_what_is_masked_once_and_leaves_an_entry(pack: factories.models.Pack) -> None:
    event, receipt = event_of(pack, masks=("$.mail",)), factories.receipt(pack, EXACT, state="routed")
    client = console_world.client("administrator")
    for one, verb in ((event, "event.reveal"), (receipt, "receipt.reveal")):
        assert "Reveal masked fields" in client.get(page_of(one)).content.decode()
        response = reveal(client, one, reason="a customer asks", how="show")
        assert response.status_code == 200
        assert b"ada@example.com" in response.content
        assert "no-store" in response.headers["Cache-Control"]
        entry = AuditEntry.objects.get(action=verb)
        assert (entry.actor, entry.target, entry.reason, entry.count) == ("administrator", str(one.id), "a customer asks", 1)
        assert json.loads(entry.detail) == {"how": "show", "masks": ["$.mail"]}
        assert b"ada@example.com" not in client.get(page_of(one)).content
        assert "ada@example.com" not in entry.detail


def test_the_exact_bytes_are_given_for_a_reason(pack: factories.models.Pack) -> None:
    receipt = receipt_of(pack, EXACT, ("$.mail",))
    response = reveal(console_world.client("administrator"), receipt, reason="export", how="download")
    assert response.content == EXACT.encode()
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert json.loads(AuditEntry.objects.get().detail)["how"] == "download"


def test_an_entry_of_a_reveal_keeps_no_more_of_the_form_than_a_place_has(pack: factories.models.Pack) -> None:
    event = event_of(pack, masks=("$.mail",))
    place = dict.fromkeys(("as", "at", "part"), "9" * 100000)
    response = console_world.client("administrator").post(f"{page_of(event)}reveal/", {"reason": "why", **place})
    assert b"ada@example.com" in response.content
    assert len(AuditEntry.objects.get(action="event.reveal").detail) < 1_000


def test_nothing_is_revealed_without_right_reason_mask_or_text(pack: factories.models.Pack) -> None:
    masked = event_of(pack, masks=("$.mail",))
    for group in ("viewer", "operator"):
        client = console_world.client(group)
        assert "Reveal masked fields" not in client.get(page_of(masked)).content.decode()
        assert reveal(client, masked, reason="r").status_code == 403
    client = console_world.client("administrator")
    answer = client.post(f"{page_of(masked)}reveal/", {"reason": "  "}, follow=True)
    assert b"ada@example.com" not in answer.content
    assert b"enter a reason" in answer.content
    other = factories.receipt(factories.install("github"), EXACT)
    assert reveal(client, other, reason="r").status_code == 302
    assert client.get(f"{page_of(masked)}reveal/").status_code == 405
    Event.objects.filter(id=masked.id).update(erasure_id=1)
    assert reveal(client, masked, reason="r").status_code == 404
    assert not AuditEntry.objects.exists()


def test_an_operator_who_got_the_right_may_reveal(pack: factories.models.Pack) -> None:
    person = console_world.user("operator")
    person.user_permissions.add(Permission.objects.get(codename="reveal_payload"))
    client = Client()
    client.force_login(person)
    assert b"ada@example.com" in reveal(client, event_of(pack, masks=("$.mail",)), reason="r").content


# ---- long texts


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of long texts, made short."""
    monkeypatch.setattr(payload_view, "LAID_OUT_AT_MOST", 2_000)
    monkeypatch.setattr(payload_reads, "MASKED_AT_MOST", 4_000)
    monkeypatch.setattr(payload_view, "MASKED_AT_MOST", 4_000)
    for module in (payload_view, payload_window):
        monkeypatch.setattr(module, "CHARACTERS", 500)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["receipt", "event"])
def test_a_long_text_is_read_a_part_at_a_time(pack: factories.models.Pack, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"line {number} é€𝄞\n" for number in range(300))
    one = receipt_of(pack, text) if kind == "receipt" else event_of(pack, text)
    monkeypatch.setattr(payload_reads.Stored, "whole", None)  # nobody calls it
    client, parameters, found = console_world.client("viewer"), {}, {}
    for _ in range(100):
        html = client.get(page_of(one), parameters).content.decode()
        for tag, attributes in Markup(html).elements:
            if tag == "div" and attributes.get("class") == "line":
                found[attributes["id"]] = True
        if not after(html, "next"):
            break
        parameters = after(html, "next")
    assert list(found) == [f"L{number}" for number in range(1, 302)]
    for _ in range(100):
        html = client.get(page_of(one), parameters).content.decode()
        assert "\\x" not in html
        if not after(html, "prev"):
            break
        parameters = after(html, "prev")
    assert parameters["part"] == "0-1"


@pytest.mark.usefixtures("small")
def test_parts_of_bytes_end_with_whole_characters(pack: factories.models.Pack) -> None:
    text = "€" * 2_000
    client, path = console_world.client("viewer"), page_of(receipt_of(pack, text))
    parameters: dict[str, str] = {}
    shown = ""
    for _ in range(100):
        html = client.get(path, parameters).content.decode()
        assert "\\x" not in html
        shown += Markup(html[html.index('class="line-text"') :]).text.split("\n")[0].removeprefix('class="line-text">')
        parameters = after(html, "next")
        if not parameters:
            break
    assert shown == text


@pytest.mark.usefixtures("small")
def test_a_search_in_a_long_text_shows_the_window_of_its_hit(pack: factories.models.Pack) -> None:
    text = "x" * 3_000 + "needle" + "y" * 3_000
    html = console_world.client("viewer").get(page_of(receipt_of(pack, text)), {"find": "needle"}).content.decode()
    assert "Match 1 of 1" in " ".join(html.split())
    assert 'id="hit">needle</mark>' in html
    assert html.count("x" * 100) < 10


@pytest.mark.usefixtures("small")
def test_what_is_too_long_to_be_masked_is_not_shown(pack: factories.models.Pack) -> None:
    receipt = receipt_of(pack, json.dumps([{"mail": "ada@example.com", "n": "x" * 100}] * 60), ("$.mail",))
    client = console_world.client("administrator")
    for parameters in ({}, {"find": "ada"}, {"part": "10-1"}, {"at": "10"}):
        content = client.get(page_of(receipt), parameters).content
        assert b"ada@example.com" not in content
        assert b"too long to mask on a page" in content
    assert b"ada@example.com" not in client.get(f"{page_of(receipt)}body").content
    shown = reveal(client, receipt, reason="r", how="show").content.decode()
    assert "ada@example.com" in shown
    assert 'name="part" value="500-1"' in shown


def test_a_large_body_opens_by_a_slice_of_it(pack: factories.models.Pack) -> None:
    size = 12 * 1024 * 1024
    receipt = receipt_of(pack, b"0123456789\n\n" * (size // 12))
    client = console_world.client("viewer")
    html = client.get(page_of(receipt), {"part": f"{size - 1_200}-7"}).content
    assert len(html) < 200_000
    assert b"12,582,912 bytes" in html
    assert b'data-number="7"' in html
    found = client.get(page_of(receipt), {"find": "9"}).content.decode()
    assert "Match 1 of 10,000 or more" in " ".join(found.split())
