"""Readable names of the routes and packs that rows refer to by id. One query each, over small tables."""

from __future__ import annotations

from collections.abc import Iterable

from connectors.models import Endpoint, Pack, Route


def routes(ids: Iterable[int | None]) -> dict[int, str]:
    wanted = {one for one in ids if one is not None}
    rows = Route.objects.filter(id__in=wanted).values_list("id", "route_key", "version")
    return {row_id: f"{key}\N{NO-BREAK SPACE}v{version}" for row_id, key, version in rows}


def packs(ids: Iterable[int]) -> dict[int, str]:
    return {row_id: str(name) for row_id, name in Pack.objects.filter(id__in=set(ids)).values_list("id", "name")}


def endpoints(ids: Iterable[int]) -> dict[int, str]:
    rows = Endpoint.objects.filter(id__in=set(ids)).values_list("id", "namespace", "slug")
    return {row_id: f"{namespace}/{slug}" for row_id, namespace, slug in rows}
