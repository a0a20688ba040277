"""The cluster's own processes: what they say when they end, and what a second signal does."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import pytest
from django.db import InterfaceError, OperationalError
from django_q.cluster import Cluster

from projection.runtime.django_q import cluster_stop
from projection.runtime.django_q.cluster import OutlastingSentinel, StoppingCluster, in_one_line


def monitor(error: Exception | None) -> None:
    if error is not None:
        raise error


@pytest.mark.parametrize("error", [OperationalError(2013, "Lost connection"), InterfaceError(0, "closed")])
def test_a_process_that_ends_with_its_database_says_so_in_one_line(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    in_one_line(monitor, error)
    (line,) = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert (said["event"], said["level"], said["reason"]) == ("queue", "warning", "the monitor exits and starts again")
    assert str(error.args[0]) in said["error"]


def test_any_other_fault_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    in_one_line(monitor, None)
    assert capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="a bug"):
        in_one_line(monitor, ValueError("a bug"))


def test_a_second_signal_in_the_middle_of_a_stop_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    cluster = object.__new__(StoppingCluster)  # without the signal handlers of a real one

    def interrupted(_self: object) -> bool:
        done.append("stopped")
        assert cluster.stop() is False, "the signal's handler calls it"
        return True

    monkeypatch.setattr(Cluster, "stop", interrupted)
    monkeypatch.setattr(cluster_stop, "stop_all", lambda: done.append("told the loops"))
    monkeypatch.setattr("projection.runtime.django_q.cluster.start_loops_if_possible", lambda _reason: done.append("handed over"))
    assert cluster.stop() is True
    assert done == ["told the loops", "stopped", "handed over"]


@dataclass
class Member:
    lives: bool

    def is_alive(self) -> bool:
        return self.lives


def test_a_guard_that_stops_waits_for_room_in_a_queue_only_while_a_reader_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = object.__new__(OutlastingSentinel)
    assert not guard._is_abandoned(os.getpid(), []), "in service the guard makes readers"
    monkeypatch.setattr(cluster_stop, "is_stopping", lambda: True)
    assert guard._is_abandoned(os.getpid(), [Member(False), Member(False)])
    assert not guard._is_abandoned(os.getpid(), [Member(False), Member(True)])
    assert guard._is_abandoned(os.getpid() + 1, [Member(True)]), "the pusher does not see the workers; its tasks come again"
