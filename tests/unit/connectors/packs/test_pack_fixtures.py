"""Each provider's folder has the same files, and its pack reads its own fixture as the fixture says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import connectors.packs
from connectors import pack
from connectors.delivery import Headers, Inbound, IngressRequest
from projection import exact_json

FOLDERS = sorted(path for path in Path(connectors.packs.__path__[0]).iterdir() if path.is_dir() and path.name != "__pycache__")


def fixture(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "fixture.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_pack_reads_its_fixture(folder: Path) -> None:
    cls = pack.find(folder.name)
    assert cls is not None, "the folder has the name of its pack"
    described = fixture(folder)
    one = cls(described["settings"])
    for delivery in described["deliveries"]:
        body = exact_json.dump(delivery["body"]).encode()
        items = one.split_request(IngressRequest("POST", "https://x", Headers(delivery["headers"]), body))
        found = [inbound for item in items if isinstance(inbound := one.read(item), Inbound)]
        assert [
            {"kind": each.kind, "source": list(each.source), "lane": list(each.lane or ()), "delivery_id": each.delivery_id}
            for each in found
        ] == delivery["reads"], delivery["title"]
        assert all(each.time is not None for each in found)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_pack_stores_a_header_that_may_carry_a_credential(folder: Path) -> None:
    cls = pack.find(folder.name)
    assert cls is not None
    kept = set(cls(fixture(folder)["settings"]).stored_headers())
    assert not kept & {"authorization", "cookie", "x-api-key", "x-hub-signature-256", "webhook-signature", "x-hubspot-signature-v3"}
