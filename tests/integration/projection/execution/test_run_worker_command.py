"""`run_worker`: the claim loop outside of a cluster."""

from __future__ import annotations

import signal

import pytest

from projection.management.commands import run_worker
from projection.models import Worker
from tests.support.commands import run, say
from tests.support.deliveries import change, open_ingress, states
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("sound_database")


@pytest.fixture(autouse=True)
def left(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the command asked for stuck flows before it ended; it would end this very process."""
    asked: list[bool] = []
    monkeypatch.setattr(run_worker, "leave_if_stuck", lambda: asked.append(True))
    return asked


@pytest.mark.parametrize("batch", ["0", "-1", "1001"])
@pytest.mark.parametrize("command", [("run_worker", "--drain"), ("route_receipts", "--once"), ("route_receipts", "--drain")])
def test_a_batch_that_no_setting_would_take_is_refused(command: tuple[str, ...], batch: str) -> None:
    open_ingress().send(change(7))
    refused = {"error": {"code": "usage", "reason": "--batch must be 1 to 1000."}}
    assert run(*command, "--batch", batch) == (2, refused)


def test_a_drain_runs_everything_that_is_due_and_ends(left: list[bool]) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(8))
    with recording() as seen:
        assert run("run_worker", "--drain") == (0, {"attempts": 2})
        assert say("run_worker", "--drain") == (0, "0 attempts\n")
    assert (sorted(seen.inputs), left) == ([1, 2], [True, True])
    assert not Worker.objects.exists(), "it took its row away"


def test_a_claim_takes_no_more_than_the_batch_that_was_asked_for() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(number) for number in range(5)])
    with recording(atomic=True, batch=True) as seen:
        assert run("run_worker", "--drain", "--batch", "2") == (0, {"attempts": 5})
    assert seen.calls == [2, 2, 1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_what_it_is_doing(number: signal.Signals, left: list[bool]) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(7), change(8))
    with recording(atomic=True) as seen:
        seen.acts.append(lambda _: signal.raise_signal(number))
        code, answer = run("run_worker", "--batch", "1")
    assert (code, answer, left) == (0, {"attempts": 1}, [True])
    assert sorted(states(7) + states(8)) == ["pending", "processed"]
