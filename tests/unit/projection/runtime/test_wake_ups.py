"""Wake-ups: a datagram ends a loop's sleep; losing one, or having no place for them, costs nothing but a poll."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from projection.runtime.wake_up import Listener, notify


@pytest.fixture(autouse=True)
def folder(settings: Settings) -> Iterator[Path]:
    """A short path: a socket's name has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="wake"))
    settings.HEADRACE_WAKE_DIR = made
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_a_wake_up_ends_the_sleep_of_every_loop_of_its_kind() -> None:
    with Listener("claim") as one, Listener("claim") as two, Listener("route") as other:
        notify("claim")
        assert (one.wait(5), two.wait(5), other.wait(0.001)) == (True, True, False)


def test_wake_ups_that_piled_up_count_as_one() -> None:
    with Listener("claim") as listener:
        for _ in range(1000):  # more than a socket's buffer holds: none of them blocks or fails
            notify("claim")
        assert (listener.wait(5), listener.wait(0.001)) == (True, False)


def test_without_a_wake_up_the_sleep_ends_by_itself() -> None:
    with Listener("claim") as listener:
        assert listener.wait(0.001) is False


def test_nobody_needs_to_listen(folder: Path) -> None:
    notify("claim")
    folder.rmdir()
    notify("claim")


def test_the_socket_of_a_dead_process_is_removed_and_the_living_are_told(folder: Path) -> None:
    with Listener("claim") as dead:
        assert dead._socket is not None
        dead._socket.close()
        with Listener("claim") as living:
            notify("claim")
            assert living.wait(5)
        assert list(folder.iterdir()) == []


def test_what_is_no_socket_disturbs_nobody(folder: Path) -> None:
    (folder / "claim.1.1.sock").write_text("no socket", encoding="utf-8")
    with Listener("claim") as listener:
        notify("claim")
        assert listener.wait(5)


def test_a_listener_without_a_usable_folder_only_sleeps(settings: Settings, folder: Path) -> None:
    (folder / "file").write_text("", encoding="utf-8")
    settings.HEADRACE_WAKE_DIR = folder / "file"
    with Listener("claim") as listener:
        notify("claim")
        assert listener.wait(0.001) is False


def test_a_listener_leaves_nothing_behind(folder: Path) -> None:
    with Listener("claim"), Listener("claim"):
        assert len(list(folder.iterdir())) == 2
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_even_be_looked_at_disturbs_nobody(settings: Settings, folder: Path) -> None:
    settings.HEADRACE_WAKE_DIR = folder / ("x" * 300)  # longer than a name may be
    notify("claim")
    with Listener("claim") as listener:
        assert listener.wait(0.001) is False
