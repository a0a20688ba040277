"""GitHub: webhooks of repositories, organizations and apps, as JSON or as a form whose `payload` field is the JSON.

GitHub never retries by itself: a refused delivery is gone until somebody asks for its redelivery, and a redelivery keeps its
GUID, so it counts as a duplicate here; run it again by a replay. Source: docs.github.com, webhooks documentation.
No transaction, no database. Begin reading at `GitHub.split` and `GitHub.read`. May import what `connectors.packs` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

from connectors.identity_texts import identity_text, inside, members, provider_time, required
from connectors.pack import Change, Inbound, IngressRequest, Item, Pack, Sample, Unreadable, hmac_sha256, json_items

OBJECT_MEMBER: Final = {
    "issues": ("issue", "issue"),
    "issue_comment": ("issue_comment", "comment"),
    "commit_comment": ("commit_comment", "comment"),
    "discussion_comment": ("discussion_comment", "comment"),
    "pull_request_review": ("pull_request_review", "review"),
    "pull_request_review_comment": ("pull_request_review_comment", "comment"),
    "pull_request_review_thread": ("pull_request_review_thread", "thread"),
    "installation_repositories": ("installation", "installation"),
    "installation_target": ("account", "account"),
    "github_app_authorization": ("github_app_authorization", "sender"),
    "dependabot_alert": ("dependabot_alert", "alert"),
    "code_scanning_alert": ("code_scanning_alert", "alert"),
    "secret_scanning_alert": ("secret_scanning_alert", "alert"),
    "secret_scanning_alert_location": ("secret_scanning_alert", "alert"),
    "repository_vulnerability_alert": ("repository_vulnerability_alert", "alert"),
    "branch_protection_rule": ("branch_protection_rule", "rule"),
    "deploy_key": ("deploy_key", "key"),
    "fork": ("fork", "forkee"),
    "page_build": ("page_build", "build"),
    "registry_package": ("package", "registry_package"),
    "team_add": ("team", "team"),
    "marketplace_purchase": ("account", "marketplace_purchase.account"),
}
"""Event → (type of the record, member that holds it), where the member is not named like the event."""

RELATIONS: Final = {
    "star": ("star", ("repository",), ("sender",)),
    "watch": ("star", ("repository",), ("sender",)),
    "member": ("member", ("repository",), ("member",)),
    "membership": ("team_member", ("team",), ("member",)),
    "organization": ("organization_member", ("organization",), ("membership", "user")),
    "org_block": ("org_block", ("organization",), ("blocked_user",)),
}
"""Event → (type, where what is joined is, where who joins it is): records that are one of the other, with both ids.

`organization.renamed` and `.deleted` name nobody, and are about the organization; `.member_invited` is about the invitation.
"""

GLOBAL_IDS: Final = ("id", "ghsa_id", "node_id")
"""Members that identify an object among all, best first."""
LOCAL_IDS: Final = ("number", "head_ref", "head_sha", "url")
"""Members that identify an object within its repository (alerts have only a number), for one without the others."""

SCOPES: Final = ("repository", "organization", "installation")
OBJECT_TIMES: Final = ("updated_at", "submitted_at", "completed_at", "published_at", "created_at", "starred_at")
LIFECYCLE: Final = {"created": "created", "opened": "created", "deleted": "deleted", "destroyed": "deleted", "restored": "restored"}


class GitHub(Pack):
    """Kind is the event and its action, `pull_request.opened`; order is kept per repository and object."""

    name = "github"
    version = "1"
    accounts = "none"
    signature = hmac_sha256(header="X-Hub-Signature-256", encoding="hex", prefix="sha256=", name="github-hmac-sha256")
    max_body_bytes = 25 * 1024 * 1024
    kept_headers = (
        "x-github-delivery",
        "x-github-event",
        "x-github-hook-id",
        "x-github-hook-installation-target-id",
        "x-github-hook-installation-target-type",
    )
    provider_retries = False

    def delivery_id(self, request: IngressRequest) -> str | None:
        return request.headers.get("x-github-delivery")

    def sample(self, number: int) -> Sample | None:
        known = super().sample(number)
        return known and Sample({**known.headers, "X-GitHub-Delivery": f"test-{number}"}, known.body)

    def split(self, body: bytes) -> Sequence[Item]:
        return json_items(_form_payload(body) if body.startswith(b"payload=") else body)

    def read(self, item: Item) -> Inbound:
        payload = members(item)
        event = item.headers.get("x-github-event")
        if not event:
            raise Unreadable("the header X-GitHub-Event is missing")
        action = payload.get("action")
        found_type, found_id, lane_id = _record(event, payload)
        return Inbound(
            kind=f"{event}.{action}" if isinstance(action, str) and action else event,
            source=(found_type, found_id),
            lane=(*_scope(payload), found_type, lane_id),
            delivery_id=item.headers.get("x-github-delivery"),
            time=_time(event, payload),
        )

    def change(self, kind: str, payload: Any) -> Change:
        event, _, action = kind.partition(".")
        found = _object(event, payload)
        return Change(properties=payload if found is None else found, lifecycle=LIFECYCLE.get(action, ""))


def _form_payload(body: bytes) -> bytes:
    """The JSON text of a form-encoded delivery, exactly as GitHub wrote it. Raises Unreadable."""
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True, encoding="utf-8", errors="strict")
    except (UnicodeDecodeError, ValueError) as error:
        raise Unreadable(f"the body is not a valid form: {error}") from None
    return dict(fields)["payload"].encode("utf-8")


def _object(event: str, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = inside(payload, *OBJECT_MEMBER.get(event, (event, event))[1].split("."))
    return found if isinstance(found, Mapping) else None


def _first_id(found: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((text for name in names if (text := identity_text(found.get(name))) is not None), None)


def _record(event: str, payload: Mapping[str, Any]) -> tuple[str, str, str]:
    """(type, id, id within the lane) of the record that the event is about. The id is unique among all repositories."""
    if event == "push":
        # Each push is a fact of its own; the pushes of one ref keep their order.
        ref = required(payload, "ref")
        return "push", _within_scope(payload, f"{ref}@{required(payload, 'after')}"), ref
    if event in ("create", "delete"):
        ref = required(payload, "ref")
        return required(payload, "ref_type"), _within_scope(payload, ref), ref
    if event in ("ping", "meta"):
        hook = required(payload, "hook_id")
        return "hook", hook, hook
    return _relation(event, payload) or _named_object(event, payload)


def _relation(event: str, payload: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """A record that is one of another: who, in what. None: the event is none, or names nobody."""
    if event not in RELATIONS:
        return None
    found_type, whole, part = RELATIONS[event]
    invitation = identity_text(inside(payload, "invitation", "id"))
    if event == "organization" and invitation is not None:
        return "organization_invitation", invitation, invitation
    if inside(payload, *part) is None and event == "organization":
        return None
    both = f"{_part_id(payload, *whole)}/{_part_id(payload, *part)}"
    return found_type, both, both


def _within_scope(payload: Mapping[str, Any], local_id: str) -> str:
    """An id that is unique within its repository (or organization), with that one's id in front. Ids of scopes have no slash."""
    return "/".join([*_scope(payload), local_id])


def _named_object(event: str, payload: Mapping[str, Any]) -> tuple[str, str, str]:
    found_type = OBJECT_MEMBER.get(event, (event, event))[0]
    found = _object(event, payload)
    object_id = _first_id(found, GLOBAL_IDS) if found is not None else identity_text(payload.get("id"))
    if object_id is not None:
        return found_type, object_id, object_id
    local_id = _first_id(found, LOCAL_IDS) if found is not None else None
    if local_id is not None:
        return found_type, _within_scope(payload, local_id), local_id
    for scope in (*SCOPES, "sender"):  # about nothing smaller than its repository: repository_dispatch, public, gollum …
        scope_id = identity_text(inside(payload, scope, "id"))
        if scope_id is not None:
            return scope, scope_id, scope_id
    raise Unreadable(f"the {event} event contains no {found_type}, repository, organization, installation or sender")


def _part_id(payload: Mapping[str, Any], *path: str) -> str:
    text = identity_text(inside(payload, *path, "id"))
    if text is None:
        raise Unreadable(f"{'.'.join(path)}.id is missing")
    return text


def _scope(payload: Mapping[str, Any]) -> list[str]:
    """Id of the repository, else of the organization, else of the installation; nothing for events of a user or of GitHub."""
    ids = (identity_text(inside(payload, name, "id")) for name in SCOPES)
    return [scope_id for scope_id in ids if scope_id is not None][:1]


def _time(event: str, payload: Mapping[str, Any]) -> Any:
    if event == "push":
        return provider_time(inside(payload, "head_commit", "timestamp")) or provider_time(
            inside(payload, "repository", "pushed_at")
        )
    found = _object(event, payload)
    times = (provider_time(part.get(name)) for part in (found or {}, payload) for name in OBJECT_TIMES)
    return next((moment for moment in times if moment is not None), None)
