"""What ends a resident loop: a signal, the cluster's flag, or the death of the process that started it."""

from __future__ import annotations

import os
import signal

import pytest

from projection import stopping
from projection.signals import stop_on_signals
from projection.stopping import StopFlag


@pytest.fixture(autouse=True)
def no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "_flag", None)


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


def test_outside_of_a_cluster_there_is_no_flag_to_raise() -> None:
    flag = StopFlag()
    stopping.stop_all()
    assert not flag()


def test_the_cluster_s_flag_is_one_and_is_seen_by_every_loop() -> None:
    made = stopping.prepare()
    assert stopping.prepare() is made
    loops = [StopFlag(), StopFlag()]
    assert [flag() for flag in loops] == [False, False]
    stopping.stop_all()
    assert [flag() for flag in loops] == [True, True]


def test_a_loop_ends_once_the_process_that_started_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    flag = StopFlag()
    assert not flag()
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert flag()
