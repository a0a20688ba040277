"""GitHub: kinds, records and lanes of its events; forms keep their exact JSON."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus

import pytest

from connectors.delivery import Headers, Inbound, IngressRequest
from connectors.pack import Unreadable
from connectors.packs.github import GitHub
from tests.support import signing

PACK = GitHub()
REPOSITORY = {"repository": {"id": 99}, "sender": {"id": 7}}


def read(event: str, payload: dict[str, Any]) -> Inbound:
    request = IngressRequest(
        "POST", "https://x", Headers({"X-GitHub-Event": event, "X-GitHub-Delivery": "guid"}), json.dumps(payload).encode()
    )
    (item,) = PACK.split_request(request)
    return PACK.read(item)


@pytest.mark.parametrize(
    ("event", "payload", "kind", "source", "lane"),
    [
        ("issues", {"action": "opened", "issue": {"id": 5}}, "issues.opened", ("issue", "5"), ("99", "issue", "5")),
        ("push", {"ref": "refs/heads/main", "after": "abc"}, "push", ("push", "99/refs/heads/main@abc"), ("99", "push", "refs/heads/main")),
        ("create", {"ref": "v1", "ref_type": "tag"}, "create", ("tag", "99/v1"), ("99", "tag", "v1")),
        ("star", {"action": "created"}, "star.created", ("star", "99/7"), ("99", "star", "99/7")),
        ("ping", {"hook_id": 3}, "ping", ("hook", "3"), ("99", "hook", "3")),
        ("code_scanning_alert", {"alert": {"number": 2}}, "code_scanning_alert", ("code_scanning_alert", "99/2"),
            ("99", "code_scanning_alert", "2")),
        ("repository_dispatch", {"action": "go"}, "repository_dispatch.go", ("repository", "99"), ("99", "repository", "99")),
    ],
)  # fmt: skip
def test_an_event_of_a_repository(
    event: str, payload: dict[str, Any], kind: str, source: tuple[str, str], lane: tuple[str, ...]
) -> None:
    found = read(event, REPOSITORY | payload)
    assert (found.kind, found.source, found.lane, found.delivery_id) == (kind, source, lane, "guid")


ORGANIZATION = {"organization": {"id": 50}, "sender": {"id": 7}}
MEMBER_EVENTS = [
    ("organization", ORGANIZATION | {"action": "member_added"}, ("membership", "user"), "organization_member", "50"),
    ("organization", ORGANIZATION | {"action": "member_removed"}, ("membership", "user"), "organization_member", "50"),
    ("membership", ORGANIZATION | {"action": "added", "team": {"id": 60}}, ("member",), "team_member", "60"),
    ("member", REPOSITORY | {"action": "added"}, ("member",), "member", "99"),
    ("org_block", ORGANIZATION | {"action": "blocked"}, ("blocked_user",), "org_block", "50"),
]


def with_user(payload: dict[str, Any], path: tuple[str, ...], user: int) -> dict[str, Any]:
    found: Any = {"id": user}
    for name in reversed(path):
        found = {name: found}
    return payload | found


@pytest.mark.parametrize(("event", "payload", "path", "source_type", "whole"), MEMBER_EVENTS)
def test_each_member_is_a_record_of_its_own(
    event: str, payload: dict[str, Any], path: tuple[str, ...], source_type: str, whole: str
) -> None:
    one, other = (read(event, with_user(payload, path, user)) for user in (5, 6))
    assert (one.source, other.source) == ((source_type, f"{whole}/5"), (source_type, f"{whole}/6"))
    assert one.lane != other.lane


def test_the_organization_itself_and_its_invitations_are_no_members() -> None:
    assert read("organization", ORGANIZATION | {"action": "renamed"}).source == ("organization", "50")
    invited = read("organization", ORGANIZATION | {"action": "member_invited", "invitation": {"id": 8}, "user": {"id": 5}})
    assert invited.source == ("organization_invitation", "8")


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("dependabot_alert", {"alert": {"number": 2}}),
        ("create", {"ref": "v1", "ref_type": "tag"}),
        ("push", {"ref": "refs/heads/main", "after": "abc"}),
        ("member", {"member": {"id": 5}}),
        ("merge_group", {"merge_group": {"head_ref": "refs/heads/queue", "head_sha": "abc"}}),
    ],
)
def test_what_is_numbered_or_named_within_a_repository_is_another_record_in_each(event: str, payload: dict[str, Any]) -> None:
    one, other = (read(event, {"repository": {"id": repository}} | payload) for repository in (98, 99))
    assert one.source != other.source


def test_a_purchase_is_of_the_account_that_bought() -> None:
    bought = {"action": "purchased", "marketplace_purchase": {"account": {"id": 4}}, "sender": {"id": 7}}
    assert read("marketplace_purchase", bought).source == ("account", "4")


def test_an_event_without_repository_or_organization() -> None:
    found = read("github_app_authorization", {"action": "revoked", "sender": {"id": 7}})
    assert (found.source, found.lane) == (("github_app_authorization", "7"), ("github_app_authorization", "7"))


def test_unix_and_iso_times_of_a_push() -> None:
    assert str(
        read("push", REPOSITORY | {"ref": "r", "after": "a", "head_commit": {"timestamp": "2019-05-15T15:20:30+02:00"}}).time
    ) == ("2019-05-15 13:20:30+00:00")
    pushed = {"repository": {"id": 99, "pushed_at": 1557933657}, "ref": "r", "after": "a", "head_commit": None}
    assert str(read("push", pushed).time) == "2019-05-15 15:20:57+00:00"


def test_a_form_keeps_the_exact_json_of_its_payload() -> None:
    text = '{"ref": "refs/heads/é",  "after":"abc", "n": 1.10, "repository": {"id": 99}}'
    body = f"payload={quote_plus(text)}".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"} | signing.github(body, "secret-of-the-form")
    request = IngressRequest("POST", "https://x", Headers(headers), body)
    assert PACK.verify(request, ["secret-of-the-form"], 0).ok
    (item,) = PACK.split_request(request)
    assert item.text == text


@pytest.mark.parametrize("body", [b"payload=%ff", b"payload=\xff", b"payload"])
def test_a_broken_form_is_unreadable(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"form|JSON"):
        PACK.split(body)


def test_without_the_event_header_it_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="X-GitHub-Event"):
        PACK.read(PACK.split(b"{}")[0])


def test_the_record_follows_the_object_of_the_event() -> None:
    change = PACK.change("pull_request.opened", {"pull_request": {"id": 1, "title": "x"}, "sender": {}})
    assert (dict(change.properties), change.lifecycle) == ({"id": 1, "title": "x"}, "created")
    assert PACK.change("issue_comment.deleted", {"comment": {"id": 1}}).lifecycle == "deleted"


def test_its_limit_and_its_retries_are_as_documented() -> None:
    assert GitHub.max_body_bytes == 25 * 1024 * 1024
    assert GitHub.provider_retries is False
