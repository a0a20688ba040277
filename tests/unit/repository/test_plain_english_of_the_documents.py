"""The documents are written in plain English: words that a reader has to translate first do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.repository.test_documents_resolve import DOCUMENTS, names_of, prose

INSTEAD = {
    r"mend(?:s|ed|ing)?\b": "fix",
    r"(?:is|was|are|were) away\b": "is unavailable",
    r"anew\b": "again",
    r"go(?:es)? by\b": "follows, uses",
    r"of ours\b": "Headrace's own",
    r"(?<!there )(?<!when )is no (?!longer)": "is not a",
    r"leads? to\b": "causes, belongs to, opens",
    r"(?:nobody|somebody|anybody)\b": "name the component",
    r"(?:tells?|told|telling)\b": "show, report, say",
    r"laid out\b": "formatted",
    r"(?:back|well) again\b": "recovered",
    r"by itself\b": "automatically",
    r"by hand\b": "manually",
    r"audit trail\b": "audit log",
    r"time-outs?\b": "timeout",
    r"(?<!\| )rooms?\b(?!,| \|)": "stage",
    r"stands?\b": "is, counts",
    r"upkeep\b": "maintenance",
    r"(?:died|dies)\b of": "failed with",
    r"burns?\b": "uses",
}
"""Pattern → what to write."""


@pytest.mark.parametrize("document", [one for one in DOCUMENTS if one.name != "glossary.md"], ids=names_of)
def test_no_word_needs_a_translation(document: Path) -> None:
    text = re.sub(r"`[^`]*`", "", prose(document)).replace("\n", " ")
    found = [
        (match[0], text[max(0, match.start() - 30) : match.end() + 20], instead)
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(rf"\b{pattern}", text, re.IGNORECASE)
    ]
    assert found == []
