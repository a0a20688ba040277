"""A flow that raises leaves where in its code it did, in the log and with the failure, and hooks for error trackers hear of it."""

from __future__ import annotations

import pytest

from projection import flows
from projection.execution.failed import FIRST_FRAMES, LAST_FRAMES, frames_of
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter, Failure, Generation, RetryLater, Skip
from projection.models import WorkFailure
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("database")
HERE = __file__


def book(generation: Generation) -> None:
    _reject(generation.source.id)


def _reject(secret: str) -> None:
    raise ValueError(f"cannot be booked: {secret}")


@pytest.mark.parametrize("options", [{}, {"atomic": True}, {"atomic": True, "batch": True}], ids=["plain", "atomic", "batch"])
def test_the_frames_of_the_flow_s_code_are_kept_and_logged(options: dict[str, bool], capsys: pytest.CaptureFixture[str]) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event", masks=("$.name",))
    ingress.admit(change(7))
    with recording(**options) as seen:
        seen.acts += [book]
        drain_claims()
    frames = WorkFailure.objects.get().frames
    assert frames is not None
    assert frames.count(f'File "{HERE}"') >= 2
    assert "in _reject" in frames
    assert "execution/execute.py" not in frames
    assert "in _reject" in capsys.readouterr().err


def test_what_a_flow_says_of_its_work_has_no_frames_but_what_caused_it_has() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(number) for number in range(4)])

    with recording() as seen:
        dead = DeadLetter("hopeless")
        dead.__cause__ = KeyError("of mine")
        seen.raises_for = {"0": Skip("gone"), "1": RetryLater(5), "2": DeadLetter("no"), "3": dead}
        drain_claims()
    found = dict(WorkFailure.objects.values_list("error", "frames"))
    assert {error: bool(frames) for error, frames in found.items()} == {"retry in 5 s": False, "no": False, "hopeless": True}


def test_a_deep_recursion_leaves_its_first_and_last_frames() -> None:
    def deeper(left: int) -> None:
        if left:
            deeper(left - 1)
        raise ValueError("deep")

    with pytest.raises(ValueError, match="deep") as caught:
        deeper(300)
    frames = frames_of(caught.value)
    assert 0 < frames.count("File ") <= FIRST_FRAMES + LAST_FRAMES
    assert "more frames" in frames


def test_a_hook_hears_of_each_exception_and_what_it_raises_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[Failure] = []

    def broken(_: Failure) -> None:
        raise RuntimeError("the tracker is away")

    monkeypatch.setattr(flows, "_failure_hooks", [])
    assert flows.on_failure(broken) is broken
    flows.on_failure(heard.append)
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(7), change(8))
    with recording() as seen:
        seen.raises_for = {"7": ValueError("no"), "8": Skip("gone")}
        drain_claims()
    (failure,) = heard
    assert (str(failure.error), failure.flow, failure.attempt, failure.is_dead) == ("no", "test.record", 1, False)
    assert "the tracker is away" in capsys.readouterr().err
    assert WorkFailure.objects.get().error == "ValueError: no"
