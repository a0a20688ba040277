"""The statement catalogue: one text, one name, one module that sends it, and a contract above each."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.managers import ReceiptManager
from projection.database.catalogue import catalogue
from projection.managers import EventManager, WorkItemManager

ROOT = Path(__file__).parents[4]
PACKAGES = ("projection", "connectors", "ops_ui")
FOLDERS = [ROOT / package for package in PACKAGES]
NAMES = [(folder.name, name) for folder in FOLDERS for name in catalogue(folder)]
HEADER = re.compile(r"^-- name: (\w+)\n((?:-- .+\n)*)", re.MULTILINE)


def naming_modules() -> dict[str, set[Path]]:
    """Statement → the modules that pass its name to a call, or look it up by it.

    Rights and names of pages, which may have a statement's name, stand in tuples.
    """
    found: dict[str, set[Path]] = {name: set() for _, name in NAMES}
    for path in (path for folder in FOLDERS for path in folder.rglob("*.py")):
        for text in _literals(ast.parse(path.read_text(encoding="utf-8"))):
            for name in {text, f"audit_{text}"} & found.keys():  # the audit sends by the name of the invariant
                found[name].add(path)
    return found


def _literals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        used = node.args if isinstance(node, ast.Call) else [node.slice] if isinstance(node, ast.Subscript) else []
        yield from (one.value for one in used if isinstance(one, ast.Constant) and isinstance(one.value, str))


MODULES = naming_modules()
PLACES = {
    name: path
    for folder in FOLDERS
    for path in folder.rglob("*.sql")
    for name, _ in HEADER.findall(path.read_text(encoding="utf-8"))
}
"""Statement → the file that it lies in."""


def test_names_are_unique_over_all_folders() -> None:
    assert [name for name, count in Counter(name for _, name in NAMES).items() if count > 1] == []


@pytest.mark.parametrize(("package", "name"), NAMES, ids=[name for _, name in NAMES])
def test_a_statement_lies_in_the_folder_of_the_one_module_that_sends_it(package: str, name: str) -> None:
    """Of which the managers and models of a package, which stand above its folders, may send what lies below."""
    if name.startswith("audit_"):  # sent by the name of its invariant, which is a word that others use too
        assert PLACES[name].with_suffix(".py") in MODULES[name]
        return
    (module,) = MODULES[name]
    root = (ROOT / package / "managers.py", ROOT / package / "models.py")
    assert module.parent == PLACES[name].parent or module in root


@pytest.mark.parametrize("path", [path for folder in FOLDERS for path in sorted(folder.rglob("*.sql"))], ids=lambda path: path.name)
def test_every_statement_has_a_contract(path: Path) -> None:
    bare = [
        name
        for name, comment in HEADER.findall(path.read_text(encoding="utf-8"))
        if not comment.strip() and not name.startswith("audit_")  # an invariant's sentence is its contract
    ]
    assert bare == []


@pytest.mark.parametrize("manager", [EventManager, WorkItemManager, ReceiptManager])
def test_a_manager_method_has_the_name_of_its_statement(manager: type) -> None:
    names = {name for _, name in NAMES}
    methods = {name: inspect.getsource(method) for name, method in vars(manager).items() if inspect.isfunction(method)}
    assert methods
    for method, source in methods.items():
        assert method in names
        assert f'"{method}"' in source


def test_a_name_used_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- name: twice\nSELECT 1\n-- name: twice\nSELECT 2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="twice is defined twice"):
        catalogue(tmp_path)


def test_comments_are_not_sent(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- a room\n\n-- name: one\n-- why\nSELECT 1\n-- here\nFROM t\n", encoding="utf-8")
    assert catalogue(tmp_path) == {"one": "SELECT 1\nFROM t"}


@pytest.mark.parametrize(("package", "name"), NAMES, ids=[name for _, name in NAMES])
def test_no_statement_relies_on_what_a_server_lacks(package: str, name: str) -> None:
    text = catalogue(ROOT / package)[name].upper()
    for word in ("SKIP LOCKED", "FOR SHARE", "RETURNING", "JSON_TABLE", "NOW(", "CURRENT_TIMESTAMP"):
        assert word not in text
    assert "NOWAIT" not in text or name == "lock_expired_leases", (
        "each server refuses with a code of its own, and a caller must know both"
    )


@pytest.mark.parametrize(("package", "name"), NAMES, ids=[name for _, name in NAMES])
def test_rows_are_changed_by_primary_key_alone(package: str, name: str) -> None:
    """Through an index on State, which an optimizer may prefer, an UPDATE would lock, and wait for, rows of others."""
    text = catalogue(ROOT / package)[name]
    if text.startswith("UPDATE") and re.search(r"\bId IN\b", text.partition("WHERE")[2]):
        assert re.match(r"UPDATE `\w+` FORCE INDEX \(PRIMARY\)\s", text)
