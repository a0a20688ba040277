"""What the documents point to is there: links and anchors between them, and the files, folders and functions that they name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.operations.ingress_audit import INGRESS_INVARIANTS
from projection.integrity.invariants import INVARIANTS

ROOT = Path(__file__).parents[3]
SOURCES = ("connectors", "projection", "ops_ui", "tests", "templates", "script")
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(path for name in SOURCES for path in (ROOT / name).rglob("*.md"))]
)
LINK = re.compile(r"(?<!`)\]\(([^)\s]+)\)")
NAME = re.compile(r"`((?:projection|connectors|ops_ui)(?:\.[a-z_A-Z]\w*)+)`")
ELSEWHERE = re.compile(
    r"\((?:protocol|acceptance) [\w ]|\bseed steps?\b|\((?:[SI] \d+[,;) ])|\b(?:acceptance|system|interfaces|layout)\.md\b"
)
"""Pages that are not in the repository, and their numbers."""
PLACE = re.compile(r"`((?:projection|connectors|ops_ui|tests|templates|docs|script)/[\w./]*)`")


def names_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def prose(document: Path) -> str:
    """The text without its code blocks."""
    return re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Explicit anchors, and those that a repository host makes of headings."""
    text = prose(document)
    found = set(re.findall(r'<a id="([^"]+)"></a>', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=names_of)
def test_each_link_leads_to_a_file_and_an_anchor(document: Path) -> None:
    broken = []
    for link in LINK.findall(prose(document)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=names_of)
def test_an_anchor_is_there_once(document: Path) -> None:
    explicit = re.findall(r'<a id="([^"]+)"></a>', prose(document))
    assert len(explicit) == len(set(explicit))


def cited() -> Iterator[tuple[str, str, str]]:
    """(place, document, anchor) of each document that code, tests or templates cite."""
    for name in SOURCES:
        for path in (ROOT / name).rglob("*"):
            if path.suffix in {".py", ".sql", ".html", ".toml", ".css", ".js"}:
                for document, anchor in re.findall(r"\b(docs/[\w./-]+\.md)(?:#([\w-]+))?", path.read_text(encoding="utf-8")):
                    yield names_of(path), document, anchor


def test_what_code_and_tests_cite_is_there() -> None:
    found = set(cited())
    assert len(found) > 50
    known = {document: anchors(ROOT / document) for _, document, _ in found if (ROOT / document).exists()}
    assert [one for one in sorted(found) if one[1] not in known or (one[2] and one[2] not in known[one[1]])] == []


def test_nothing_cites_pages_that_are_not_here() -> None:
    texts = {
        path: path.read_text(encoding="utf-8") for name in SOURCES for path in (ROOT / name).rglob("*.py") if path != Path(__file__)
    }
    texts |= {path: path.read_text(encoding="utf-8") for name in SOURCES for path in (ROOT / name).rglob("*.sql")}
    assert [(names_of(path), found[0]) for path, text in texts.items() if (found := ELSEWHERE.search(text))] == []


def test_the_protocol_lists_every_invariant_of_the_audit() -> None:
    section = prose(ROOT / "docs" / "protocol.md").partition("## Invariants")[2]
    listed = set(re.findall(r"`([a-z_]+)`", section))
    assert listed == {invariant.name for invariant in (*INVARIANTS, *INGRESS_INVARIANTS)}


@pytest.mark.parametrize("document", [one for one in DOCUMENTS if "CHANGELOG" not in one.name], ids=names_of)
def test_the_files_and_functions_that_it_names_exist(document: Path) -> None:
    text = prose(document)
    missing = [place for place in PLACE.findall(text) if not (ROOT / place).exists()]
    missing += [name for name in NAME.findall(text) if not exists(name)]
    assert missing == []


def exists(dotted: str) -> bool:
    """Whether a package, a module or a name of a module's top level is called so."""
    parts = dotted.split(".")
    place = ROOT.joinpath(*parts)
    if place.is_dir() or place.with_suffix(".py").exists():
        return True
    module = ROOT.joinpath(*parts[:-1])
    source = next((one for one in (module.with_suffix(".py"), module / "__init__.py") if one.exists()), None)
    return source is not None and parts[-1] in top_level(source)


def top_level(source: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found
