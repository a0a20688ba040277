"""A folder is read again exactly when it may have changed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from unittest import mock

import pytest

from projection.runtime.folder_names import STILL_NS, FolderNames


def let_it_be_still(folder: Path) -> None:
    """As if its last change were long ago."""
    long_ago = time.time_ns() - 2 * STILL_NS
    os.utime(folder, ns=(long_ago, long_ago))


def test_a_still_folder_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    let_it_be_still(tmp_path)
    names = FolderNames()
    with mock.patch("projection.runtime.folder_names.os.listdir", side_effect=os.listdir) as read:
        assert [names.of(tmp_path) for _ in range(3)] == [("one",)] * 3
    assert read.call_count == 1


def test_what_comes_and_goes_shows_at_once(tmp_path: Path) -> None:
    let_it_be_still(tmp_path)
    names = FolderNames()
    assert names.of(tmp_path) == ()
    (tmp_path / "one").touch()
    assert names.of(tmp_path) == ("one",)
    (tmp_path / "one").unlink()
    assert names.of(tmp_path) == ()


def test_a_change_within_the_tick_of_the_last_one_shows(tmp_path: Path) -> None:
    """The file system gives both the same time; so nothing is remembered of a folder that changed just now."""
    (tmp_path / "one").touch()
    at = tmp_path.stat().st_mtime_ns
    names = FolderNames()
    assert names.of(tmp_path) == ("one",)
    (tmp_path / "two").touch()
    os.utime(tmp_path, ns=(at, at))
    assert sorted(names.of(tmp_path)) == ["one", "two"]


def test_another_folder_in_its_place_is_another(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / folder.name).touch()
        os.utime(folder, ns=(1, 1))
    names = FolderNames()
    assert names.of(first) == ("first",)
    assert names.of(second) == ("second",)
    first.rename(tmp_path / "away")
    second.rename(first)
    assert names.of(first) == ("second",)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    names = FolderNames()
    with pytest.raises(FileNotFoundError):
        names.of(tmp_path / "nowhere")
    (tmp_path / "nowhere").mkdir()
    assert names.of(tmp_path / "nowhere") == ()
