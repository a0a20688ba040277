"""The provider samples and signature vectors that lie beside the checkout; tests that need them say so where they are missing."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from projection import exact_json

FOLDER = Path(os.environ.get("SHARED_PAYLOADS") or Path(__file__).resolve().parents[3] / "shared" / "payloads")

needs_samples = pytest.mark.skipif(
    not (FOLDER / "signature_vectors.json").is_file(),
    reason="the provider samples are not here; name their folder in SHARED_PAYLOADS",
)


@dataclass(frozen=True)
class Sample:
    name: str
    headers: dict[str, str]
    body: bytes
    value: Any


def samples(provider: str) -> list[Sample]:
    """Every sample of a provider, its body as the exact bytes of the file; none where the folder is missing."""
    return [_sample(path) for path in sorted((FOLDER / provider).glob("*.json"))]


def _sample(path: Path) -> Sample:
    text = path.read_text(encoding="utf-8")
    at = exact_json.value_at(text, ("request", "body"))
    if at is None:
        raise ValueError(f"{path.name} has no body")
    body = text[at : exact_json.end_of(text, at)]
    return Sample(path.stem, json.loads(text)["request"]["headers"], body.encode(), exact_json.parse(body))


def vectors(*schemes: str) -> list[dict[str, Any]]:
    path = FOLDER / "signature_vectors.json"
    found = json.loads(path.read_text(encoding="utf-8"))["vectors"] if path.is_file() else []
    return [vector for vector in found if vector["scheme"] in schemes]
