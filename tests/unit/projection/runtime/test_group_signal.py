"""SIGTERM to a child of the cluster's head: it passes while the cluster stops, and ends the child at any other time."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import pytest

from projection.runtime.django_q import cluster_stop
from projection.runtime.django_q.kill_proof import Flag

# Python 3.12 warns of a fork beside threads (pytest-xdist has one); the child here touches nothing that a thread may hold.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

PATIENCE_SECONDS = 20.0
FORK = multiprocessing.get_context("fork")


def wait_for_a_word(pipe: Connection) -> None:
    """The child: says that it is ready, then ends when it is told to."""
    cluster_stop.outlast_group_signal()
    pipe.send("ready")
    pipe.recv()


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BaseProcess, Connection]]:
    monkeypatch.setattr(cluster_stop, "_stops", Flag())
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=wait_for_a_word, args=(theirs,))
    process.start()
    assert ours.recv() == "ready"
    yield process, ours
    process.kill()
    process.join(PATIENCE_SECONDS)


def test_it_outlasts_the_signal_of_a_cluster_that_stops(child: tuple[BaseProcess, Connection]) -> None:
    process, pipe = child
    cluster_stop.stop_all()
    os.kill(process.pid or 0, signal.SIGTERM)
    pipe.send("end")
    process.join(PATIENCE_SECONDS)
    assert process.exitcode == 0


def test_it_may_get_the_signal_before_the_head_has_said_so(child: tuple[BaseProcess, Connection]) -> None:
    process, pipe = child
    os.kill(process.pid or 0, signal.SIGTERM)
    cluster_stop.stop_all()
    pipe.send("end")
    process.join(PATIENCE_SECONDS)
    assert process.exitcode == 0


def test_it_dies_of_a_signal_that_is_meant_for_it_alone(child: tuple[BaseProcess, Connection]) -> None:
    process, _ = child
    os.kill(process.pid or 0, signal.SIGTERM)
    process.join(PATIENCE_SECONDS)
    assert process.exitcode == -signal.SIGTERM
