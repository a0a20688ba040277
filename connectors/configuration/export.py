"""The other way: a namespace written as the TOML that `config apply` takes. Secrets leave only as references, never as values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from connectors import durations
from connectors.configuration import endpoints, routes, stored_secrets
from connectors.configuration.file import MODES
from connectors.configuration.live_packs import live_packs
from connectors.ingress.limit_values import EndpointLimits
from connectors.models import Connection, Endpoint, Pack
from connectors.states import EndpointState
from projection.facts import RateLimit, RetryPolicy, RouteFacts

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_DEFAULT_ROUTE: Final = {"source_id_case": "exact", "target_lane": "", "order": "source", "queue_class": "default"}


def as_table(namespace: str) -> dict[str, Any]:
    """The configuration of a namespace as nested tables; what has its default is left out, and so is a secret without reference."""
    packs = {row.name: _pack(row) for row in live_packs(namespace)}
    connections = {row.name: _connection(row) for row in Connection.objects.filter(namespace=namespace).order_by("name")}
    published = {facts.key: route_section(facts) for facts in routes.all_current(namespace)}
    return {"namespace": namespace, "packs": packs, "connections": connections, "routes": published}


def as_toml(table: Mapping[str, Any]) -> str:
    """The text of such tables. Applying it to the namespace it came from changes nothing."""
    lines = [
        "# Written by `config export`. Secrets appear as the reference they came from (env:, file:);",
        "# without a reference, the stored secret is kept when this file is applied.",
        f"namespace = {_value(table['namespace'])}",
    ]
    for name, section in table["packs"].items():
        lines += _section(["packs", name], {key: value for key, value in section.items() if key != "endpoint"})
        for slug, endpoint in section["endpoint"].items():
            lines += _section(["packs", name, "endpoint", slug], endpoint)
    for group in ("connections", "routes"):
        for name, section in table[group].items():
            lines += _section([group, name], section)
    return "\n".join(lines) + "\n"


def _pack(row: Pack) -> dict[str, Any]:
    rows = Endpoint.objects.filter(pack_id=row.id).exclude(state=EndpointState.REMOVED).order_by("slug")
    section: dict[str, Any] = {"class": row.class_name} if row.class_name else {}
    section["version"] = row.version
    if settings := json.loads(row.settings):
        section["settings"] = settings
    section["endpoint"] = {one.slug: _endpoint(one) for one in rows}
    return section


def _endpoint(row: Endpoint) -> dict[str, Any]:
    section: dict[str, Any] = {"account": row.account} if row.account else {}
    if row.public_url:
        section["public_url"] = row.public_url
    section |= _references(row.secrets)
    if row.signature_scheme:
        section["signature"] = row.signature_scheme
    if row.unverified_policy != endpoints.KEEP:
        section["unverified"] = row.unverified_policy
    return section | EndpointLimits.of(row.limits).written


def _connection(row: Connection) -> dict[str, Any]:
    return {"url": row.url, **_references(row.secrets)}


def _references(text: str) -> dict[str, Any]:
    """`secrets` when every secret in force has a reference; otherwise nothing, which keeps the stored ones."""
    references = [value.reference for value in stored_secrets.in_force(text)]
    return {"secrets": references} if references and all(references) else {}


def route_section(facts: RouteFacts) -> dict[str, Any]:
    """The section of one route, as the file would say it."""
    spelled = {stored: word for word, stored in MODES.items()}
    section: dict[str, Any] = {
        "pack": facts.pack_name,
        "on": list(facts.provider_kinds),
        "kind": facts.event_kind,
        "mode": spelled[facts.mode],
    }
    if facts.settle_seconds:
        section["settle"] = durations.readable(facts.settle_seconds)
    section["flow"] = facts.flow_name
    if facts.work_type != facts.companion_flow:
        section["work_type"] = facts.work_type
    section |= {name: getattr(facts, name) for name, default in _DEFAULT_ROUTE.items() if getattr(facts, name) != default}
    if facts.retry != RetryPolicy():
        section["retry"] = _retry(facts.retry)
    if facts.limit is not None:
        section["limit"] = _limit(facts.limit)
    if facts.masks:
        section["mask"] = list(facts.masks)
    if facts.connection:
        section["connection"] = facts.connection
    return section


def _retry(policy: RetryPolicy) -> dict[str, Any]:
    section: dict[str, Any] = {"base": durations.readable(policy.base), "factor": policy.factor}
    if policy.cap is not None:
        section["cap"] = durations.readable(policy.cap)
    section["attempts"] = policy.attempts
    if policy.give_up_after is not None:
        section["give_up_after"] = durations.readable(policy.give_up_after)
    return section


def _limit(limit: RateLimit) -> dict[str, Any]:
    rate = {"rate": durations.readable_rate(limit.rate, limit.per)} if limit.rate else {}
    return {"name": limit.name, **rate, **({"concurrency": limit.concurrency} if limit.concurrency else {})}


def members_toml(members: Mapping[str, Any]) -> str:
    """One table's members as lines of TOML, e.g. the settings of a pack. Raises TypeError for a value that TOML has no form for."""
    return "\n".join(f"{_key(name)} = {_value(value)}" for name, value in members.items())


def _section(path: Sequence[str], members: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[{'.'.join(_key(part) for part in path)}]"
    for name, value in members.items():
        yield f"{_key(name)} = {_value(value)}"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        members = ", ".join(f"{_key(name)} = {_value(member)}" for name, member in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(member) for member in value)}]"
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"{type(value).__name__} cannot be written as TOML")


def _text(value: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's; DEL is the one character that JSON leaves bare and TOML does not take."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
