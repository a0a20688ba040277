"""`startpack`: what it refuses, and that it leaves nothing behind when it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.registry import scaffold
from tests.support.commands import run, say


def refused(name: str, into: Path) -> str:
    code, answer = run("startpack", name, "--into", str(into))
    assert (code, answer["error"]["code"]) == (2, "usage")
    reason: str = answer["error"]["reason"]
    return reason


@pytest.mark.parametrize(
    "name",
    ["Acme", "acme-shop", "1acme", "_acme", "acme_", "acme__shop", "acme.shop", "../acme", "/acme", "acmé", "a" * 41, "", " "],
)
def test_a_name_that_is_no_name_of_a_package_is_refused(name: str, tmp_path: Path) -> None:
    assert f"{name!r} is not a valid pack name" in refused(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("class", "is a reserved Python keyword"),
        ("match", "is a reserved Python keyword"),
        ("github", "pack 'github' already exists"),
        ("auth", "is the name of an installed Django app"),
        ("connectors", "is the name of an installed Django app"),
        ("json", "is the name of a Python module"),
        ("django", "is the name of a Python module"),
    ],
)
def test_a_name_that_is_taken_is_refused(name: str, why: str, tmp_path: Path) -> None:
    assert why in refused(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["none", "true", "pack", "inbound", "headers", "running", "ingress_request", "unreadable"])
def test_a_name_whose_class_would_hide_what_the_package_needs_is_refused(name: str, tmp_path: Path) -> None:
    assert "a name that the template already uses" in refused(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x", "order", "what"])
def test_an_ordinary_word_is_a_name(name: str, tmp_path: Path) -> None:
    for path in scaffold.write(name, tmp_path):
        if path.suffix == ".py":
            compile(path.read_text(encoding="utf-8"), path, "exec")


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_what_is_there_already_is_left_as_it_is(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "acme"
    if kind == "folder":
        target.mkdir()
        (target / "mine").write_text("mine")
    elif kind == "file":
        target.write_text("mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    assert f"{target} already exists and was not changed" in refused("acme", tmp_path)
    if kind == "folder":
        assert [path.name for path in target.iterdir()] == ["mine"]
    elif kind == "file":
        assert target.read_text() == "mine"
    else:
        assert target.is_symlink()
        assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path / 'nowhere'} is not a directory" in refused("acme", tmp_path / "nowhere")


def test_a_folder_that_takes_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", no)
    assert refused("acme", tmp_path) == f"{tmp_path / 'acme'} cannot be created: Permission denied."


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.write_text

    def full(self: Path, text: str, **options: str) -> int:
        if self.name == "packs.py":
            raise OSError(28, "No space left on device", str(self))
        return real(self, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    assert refused("acme", tmp_path) == f"{tmp_path / 'acme' / 'packs.py'} cannot be written: No space left on device."
    assert list(tmp_path.iterdir()) == []


def test_it_says_what_it_wrote_and_what_comes_next(tmp_path: Path) -> None:
    folder = tmp_path / "my code"
    folder.mkdir()
    code, answer = run("startpack", "acme_shop", "--into", str(folder))
    files = sorted(path.name for path in (folder / "acme_shop").iterdir())
    assert (code, answer["package"], sorted(answer["files"])) == (0, str(folder / "acme_shop"), files)
    assert files == ["__init__.py", "acme_shop.toml", "fixture.json", "flows.py", "packs.py", "test_acme_shop.py"]
    assert answer["next"][0] == f"export HEADRACE_APPS=acme_shop PYTHONPATH='{folder}'"
    code, text = say("startpack", "other", "--into", str(folder))
    assert code == 0
    assert "script/manage test other" in text
    assert "OTHER_SECRET=… script/manage config apply" in text


def test_here_is_where_it_goes_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("startpack", "acme")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["acme"]


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("acme", ("acme", "Acme", "Acme", "ACME")),
        ("acme_shop2", ("acme_shop2", "AcmeShop2", "Acme-Shop2", "ACME_SHOP2")),
    ],
)
def test_every_name_follows_from_one(name: str, names: tuple[str, ...], tmp_path: Path) -> None:
    assert scaffold.Names.of(name) == scaffold.Names(*names)
    for path in scaffold.write(name, tmp_path):
        assert "$" not in path.read_text(encoding="utf-8"), path
