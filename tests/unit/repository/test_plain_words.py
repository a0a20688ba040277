"""What people read is said in the field's words: no word that an operator at three in the morning would have to translate.

Read are the texts of templates, the sentences in the code (not its docstrings), help texts of commands, and documents. A folder that keeps
the rule is named in FOLDERS; add the next one there.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.unit.repository.test_documents_resolve import DOCUMENTS

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDERS: Final = ("templates", "ops_ui", "projection", "connectors", "script")
"""Folders whose texts are held to the words, with all below them; the documents are too."""
INSTEAD: Final = {
    r"mend(s|ed|ing)?": "fix",
    r"anew": "again, or a new one",
    r"(is|are|was|were) away": "unavailable",
    r"(is|are|was|were) back": "recovered",
    r"well again": "recovered",
    r"of ours": "name what it is",
    r"go(es)? by": "is based on, uses",
    r"goes on|go on": "continues",
    r"tells?|told|telling": "shows, reports",
    r"time-outs?": "timeout",
    r"set-up": "configuration, setup",
    r"rooms?": "stage",
    r"laid out": "formatted",
    r"by itself": "automatically",
    r"by hand": "manually",
    r"any more": "no longer",
    r"nobody|somebody|anybody|whoever": "name the component or the role",
    r"(?<!there )(is|are) no(?! longer)": "is not a",
    r"doubled": "duplicated",
    r"(items|starts|deliveries|events) a (second|minute|hour|day)": "per second, per minute …",
    r"(has|have) died|died": "failed",
    r"deaths": "dead letters",
    r"chosen": "selected",
    r"(keep|keeps|kept|keeping) apart": "keep for inspection",
    r"come to (its|an) end": "finished",
    r"gathers?|gathered": "collects",
    r"runs? to (its|their) end": "finishes",
    r"in force": "active, current",
    r"audit trail": "audit log",
    r"known are": "known:",
    r"(?:item|event|body|request)s? names no": "has no",
    r"old binary": "older version of Headrace",
    r"over-long": "too long",
    r"exists already": "already exists",
    r"leads? to": "belongs to, points at, causes",
    r"stands?": "is, counts",
    r"takes? no (?!arguments)": "accepts no, is read-only",
    r"of nothing": "of 0",
    r"in vain": "without success, timed out",
    r"live secrets?": "valid secret",
    r"said nothing": "sent nothing, did not answer",
    r"upkeep": "maintenance",
    r"burns?": "uses",
}
"""Words as a regular expression of whole words, and what is said instead."""
_BANNED: Final = re.compile("|".join(rf"(?<![\w/.-])(?:{words})(?![\w/-]|\.\w)" for words in INSTEAD), re.IGNORECASE)
_TEMPLATE_TAGS: Final = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_MARKUP: Final = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.DOTALL)
_READ_ATTRIBUTES: Final = re.compile(r'\b(?:title|aria-label|placeholder|alt)="([^"]*)"')


def sentences_of_code(text: str) -> Iterator[str]:
    """String constants that people read: with a space or a capital at their beginning, and not a docstring."""
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)) or id(node) in docstrings:
            continue
        if " " in node.value or node.value[:1].isupper():
            yield node.value


def sentences_of_template(text: str) -> Iterator[str]:
    yield from _READ_ATTRIBUTES.findall(_TEMPLATE_TAGS.sub(" ", text.replace('"{{', "{{").replace('}}"', "}}")))
    yield " ".join(_MARKUP.sub("\n", _TEMPLATE_TAGS.sub(" ", text)).split())


def sentences_of_glossary(text: str) -> Iterator[str]:
    for word in tomllib.loads(text).get("words", []):
        yield from (word[part] for part in ("word", "short", "more") if part in word)


def sentences_of_shell(text: str) -> Iterator[str]:
    yield from re.findall(r"\b(?:say|die) \"(.*)\"", text)


def sentences_of_document(text: str) -> Iterator[str]:
    """Without code: names of metrics, labels and columns stay as they are."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield re.sub(r"`[^`]*`", "", prose).replace("\n", " ")


READERS: Final = {
    "": sentences_of_shell,
    ".sh": sentences_of_shell,
    ".py-tpl": lambda text: [text],
    ".toml-tpl": lambda text: [text],
    ".py": sentences_of_code,
    ".html": sentences_of_template,
    ".md": sentences_of_document,
    ".toml": sentences_of_glossary,
}


def files() -> Iterator[Path]:
    for name in FOLDERS:
        yield from sorted((ROOT / name).rglob("*"))
    yield from DOCUMENTS


def test_people_read_the_words_of_the_field() -> None:
    found = []
    for path in files():
        reader = READERS.get(path.suffix)
        if reader is None or not path.is_file() or "migrations" in path.parts:
            continue
        where = str(path.relative_to(ROOT))
        for sentence in reader(path.read_text(encoding="utf-8")):
            for match in _BANNED.finditer(sentence):
                around = " ".join(sentence[max(match.start() - 40, 0) : match.end() + 40].split())
                found.append(f"{where}: {match.group()!r} in … {around} …")
    assert found == []
