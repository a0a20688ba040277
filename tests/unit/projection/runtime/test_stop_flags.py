"""What ends a resident loop: a signal, the cluster's flag, or the death of the process that started it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from projection.runtime.django_q import cluster_stop
from projection.runtime.django_q.cluster_stop import StopFlag
from projection.runtime.django_q.kill_proof import Flag
from projection.runtime.stop_flag import stop_on_signals


@pytest.fixture(autouse=True)
def no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_stop, "_stops", Flag())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_raises_the_flag_and_ends_nothing_at_once(number: signal.Signals) -> None:
    with stop_on_signals() as stopped:
        assert not stopped()
        signal.raise_signal(number)
        assert stopped()


def test_the_former_handling_comes_back_whatever_ends_the_block() -> None:
    former = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    meanwhile = []

    def fail() -> None:
        with stop_on_signals():
            meanwhile.append(signal.getsignal(signal.SIGTERM))
            raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        fail()
    assert meanwhile != [former[signal.SIGTERM]]
    assert {number: signal.getsignal(number) for number in former} == former


def test_the_cluster_s_flag_is_one_and_is_seen_by_every_loop() -> None:
    loops = [StopFlag(), StopFlag()]
    assert [flag() for flag in loops] == [False, False]
    cluster_stop.stop_all()
    assert [flag() for flag in loops] == [True, True]


def test_a_loop_ends_once_the_process_that_started_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    flag = StopFlag()
    assert not flag()
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert flag()


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, object]]]:
    """What a process that lets SIGTERM pass does to itself all the same: (signal, what is set for it then)."""
    found: list[tuple[int, object]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: found.append((number, signal.getsignal(number))))
    former = signal.getsignal(signal.SIGTERM)
    cluster_stop.outlast_group_signal()
    yield found
    signal.signal(signal.SIGTERM, former)


def test_a_signal_to_the_whole_group_passes_once_the_head_has_said_that_it_stops(
    killed: list[tuple[int, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_stop, "sleep", lambda _: cluster_stop.stop_all())  # the head says so a moment later
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    assert killed == []


def test_a_signal_to_one_process_alone_ends_it(killed: list[tuple[int, object]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_stop, "HEAD_SECONDS", 0.02)
    signal.raise_signal(signal.SIGTERM)
    assert killed == [(signal.SIGTERM, signal.SIG_DFL)]
