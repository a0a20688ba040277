"""A destination that is away is parked: nothing of it is claimed, no budget is burned, and one item at a time tries whether it is back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from connectors.models import AuditEntry
from projection.claiming.claim import claim
from projection.database import clock
from projection.execution import thread_pool
from projection.execution.attempts import failure
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.flows import Generation, RetryLater, Unavailable
from projection.limits import circuit_breaker
from projection.models import Destination, WorkFailure, WorkItem
from projection.states import State
from tests.support.commands import run
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import Recorder, recording
from tests.support.server_work import texts_recorded
from tests.support.workers_by_hand import ByHand, let_retries_come_due

pytestmark = pytest.mark.usefixtures("sound_database")

AWAY = Unavailable("503")
PERHAPS = Unavailable("500", certain=False)


def two_destinations(items: int, *, retry: RetryPolicy = RetryPolicy(attempts=3)) -> Ingress:  # noqa: B008 - it is frozen
    ingress = open_ingress()
    ingress.route("api", mode="per_event", flow="test.api", on=("api",), retry=retry)
    ingress.route("other", mode="per_event", on=("other",))
    ingress.admit(*[change(n, kind="api") for n in range(items)], change("x", kind="other"))
    return ingress


def fail_always(seen: Recorder, error: BaseException, items: int) -> None:
    seen.raises_for = {str(n): error for n in range(items)}


def the_pause_is_over() -> None:
    Destination.objects.update(parked_until=clock.now() - timedelta(seconds=1))
    let_retries_come_due()


def states() -> set[str]:
    return set(WorkItem.objects.filter(companion_flow="api").values_list("state", flat=True))


@pytest.mark.parametrize("error", [AWAY, PERHAPS, ConnectionRefusedError("nobody there"), TimeoutError("no answer")])
def test_an_outage_parks_the_destination_and_burns_no_budget_but_what_ran_into_it(error: BaseException) -> None:
    two_destinations(60)
    with recording() as other, recording("test.api", destination="the-api") as api:
        fail_always(api, error, 60)
        drain_claims()
        assert len(other.runs) == 1
    row = Destination.objects.get()
    assert (row.name, row.state) == ("the-api", "open")
    assert row.last_error.endswith(str(error))
    assert circuit_breaker.FAILURES <= len(api.runs) <= circuit_breaker.FAILURES + 2 * thread_pool.THREADS
    assert states() <= {"pending", "retry"}
    assert max(WorkItem.objects.values_list("attempts", flat=True)) <= 1


def test_while_it_is_parked_nothing_is_claimed_and_one_item_at_a_time_tries_whether_it_is_back() -> None:
    two_destinations(30)
    with recording(), recording("test.api") as api:
        fail_always(api, AWAY, 30)
        drain_claims()
        tried = len(api.runs)
        drain_claims()
        assert len(api.runs) == tried
        for number in range(1, 6):
            the_pause_is_over()
            drain_claims()
            assert len(api.runs) == tried + number
        api.raises_for = {}
        the_pause_is_over()
        drain_claims()
        let_retries_come_due()
        drain_claims()
    assert states() == {"processed"}
    assert set(WorkItem.objects.values_list("attempts", flat=True)) == {1}
    assert Destination.objects.get().state == "closed"


def test_only_one_worker_gets_the_item_that_is_let_through() -> None:
    two_destinations(20)
    with recording(), recording("test.api") as api:
        fail_always(api, AWAY, 20)
        drain_claims()
        the_pause_is_over()
        first, second = (claim(100, owner=name, lease_seconds=60) for name in ("a", "b"))
    assert (len(first.items), len(second.items)) == (1, 0)
    assert second.next_due is not None
    assert 50 < second.next_due <= circuit_breaker.PROBE_SECONDS


def test_a_bad_item_dies_of_its_own_budget_and_parks_nobody() -> None:
    two_destinations(10)
    with recording(), recording("test.api") as api:
        api.raises_for = {"3": PERHAPS}
        for _ in range(3):
            drain_claims()
            let_retries_come_due()
    assert states() == {"processed", "dead"}
    assert WorkItem.objects.get(state="dead").attempts == 3
    assert Destination.objects.get().parked_until is None


def test_refusals_and_faults_of_the_flow_itself_open_nothing() -> None:
    two_destinations(20)
    with recording(), recording("test.api") as api:
        for n in range(20):
            api.raises_for[str(n)] = [KeyError("email"), RetryLater(5.0), RetryLater(5.0, count_attempt=False)][n % 3]
        drain_claims()
    assert len(api.runs) == 20
    assert Destination.objects.count() == 0


def test_a_retry_after_parks_the_destination_at_once_for_that_time() -> None:
    two_destinations(30)
    with recording(), recording("test.api") as api:
        api.raises = [Unavailable("429", retry_after=120.0)]
        drain_claims()
        row = Destination.objects.get()
        assert row.state == "asked"
        assert row.parked_until is not None
        assert 100 < (row.parked_until - clock.now()).total_seconds() <= 120
        the_pause_is_over()
        drain_claims()
    assert states() == {"processed"}


def test_give_up_after_still_ends_it() -> None:
    two_destinations(1, retry=RetryPolicy(attempts=3, give_up_after=3600.0))
    with recording(), recording("test.api") as api:
        fail_always(api, AWAY, 1)
        drain_claims()
        WorkItem.objects.filter(companion_flow="api").update(first_claimed_at=clock.now() - timedelta(hours=2))
        let_retries_come_due()
        drain_claims()
    dead = WorkItem.objects.get(state="dead")
    assert dead.last_error is not None
    assert "given up after" in dead.last_error


def test_atomic_flows_and_tails_tell_the_breaker_too() -> None:
    ingress = two_destinations(20)
    with recording(), recording("test.api", atomic=True) as api:
        fail_always(api, AWAY, 20)
        drain_claims(batch=5)
        assert Destination.objects.get().state == "open"
        assert len(api.runs) <= 10
    the_pause_is_over()

    def tail(generation: Generation) -> None:
        with generation.commit():
            pass

    with recording(), recording("test.api") as api:
        api.acts = [tail]
        drain_claims()
    assert Destination.objects.get().state == "closed"
    assert ingress is not None


def test_healthy_destinations_cost_no_statement_and_trouble_few() -> None:
    ingress = two_destinations(50)
    with recording(), recording("test.api") as api:
        with texts_recorded() as healthy:
            drain_claims()
        assert not [
            text for text in healthy if "INTO `_System_ConnectorDestination`" in text or "UPDATE `_System_ConnectorDest" in text
        ]
        ingress.admit(*[change(n, kind="api") for n in range(100, 110)])
        fail_always(api, AWAY, 110)
        endings = [failure(attempt, AWAY) for attempt in ByHand().claim(5)]
        with texts_recorded() as troubled:
            assert circuit_breaker.record(endings) == {"test.api"}
    assert len([text for text in troubled if "ConnectorDestination" in text]) == 5


def test_the_breaker_never_keeps_work_from_its_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    two_destinations(3)

    def broken(_: object) -> set[str]:
        raise RuntimeError("the breaker is broken")

    monkeypatch.setattr(circuit_breaker, "record", broken)
    with recording(), recording("test.api"):
        drain_claims()
    assert states() == {"processed"}
    assert "the breaker is broken" in capsys.readouterr().err


def test_each_failure_says_what_became_of_its_item() -> None:
    two_destinations(20)
    with recording(), recording("test.api") as api:
        fail_always(api, PERHAPS, 20)
        drain_claims()
    outcomes = WorkFailure.objects.values_list("outcome", flat=True)
    assert set(outcomes) <= {"retry", "deferred"}
    assert "deferred" in outcomes
    assert not WorkItem.objects.filter(state=State.DEAD).exists()


def test_an_operator_sees_what_is_parked_and_may_try_it_at_once() -> None:
    two_destinations(20)
    with recording(), recording("test.api", destination="the-api") as api:
        fail_always(api, AWAY, 20)
        drain_claims()
        (row,) = run("destinations", "list")[1]["destinations"]
        assert (row["name"], row["state"], row["last_error"]) == ("the-api", "open", "Unavailable: 503")
        tried = len(api.runs)
        assert run("destinations", "retry", "the-api", "--reason", "vendor says so")[0] == 0
        api.raises_for = {}
        let_retries_come_due()
        drain_claims()
        assert len(api.runs) > tried
        drain_claims()
    assert run("destinations", "list")[1]["destinations"] == []
    assert len(run("destinations", "list", "--all")[1]["destinations"]) == 1
    assert run("destinations", "retry", "the-api")[1]["refused"][0]["code"] == "not_parked"
    assert AuditEntry.objects.filter(action="destination.retry").count() == 1


@pytest.mark.parametrize("options", [{}, {"atomic": True}], ids=["plain", "atomic"])
@pytest.mark.parametrize(
    "error", [AWAY, Unavailable("503", retry_after=30), PERHAPS], ids=["not now", "not now, with a Retry-After", "perhaps"]
)
def test_an_item_that_alone_is_told_not_now_while_others_get_through_dies_of_its_own_attempts(
    error: BaseException, options: dict[str, bool]
) -> None:
    ingress = two_destinations(1)
    with recording(), recording("test.api", **options) as api:
        api.raises_for = {"0": error}
        for number in range(1, 16):  # a success that ends just before the poison fails is no evidence yet
            drain_claims()
            ingress.admit(change(100 + number, kind="api"))
            the_pause_is_over()
            drain_claims()
            WorkItem.objects.filter(state="retry").update(run_after=clock.now() - timedelta(seconds=1))
            if WorkItem.objects.filter(state="dead").exists():
                break
        posted = sum(source == "0" for source in api.sources)
    poison = WorkItem.objects.get(source_lane__endswith=":0")
    assert (poison.state, poison.attempts) == ("dead", 3)
    assert posted <= 15
    assert set(WorkItem.objects.exclude(id=poison.id).values_list("state", "attempts")) == {("processed", 1)}
    assert Destination.objects.get().state in ("closed", "failing")


def test_its_delay_grows_and_is_no_shorter_than_was_asked_for() -> None:
    ingress = two_destinations(1, retry=RetryPolicy(base=5, factor=3, attempts=9))
    with recording(), recording("test.api") as api:
        api.raises_for = {"0": Unavailable("503", retry_after=20)}
        delays = []
        for number in range(1, 5):
            drain_claims()
            delays.append(WorkFailure.objects.latest("id").delay_ms)
            ingress.admit(change(100 + number, kind="api"))
            the_pause_is_over()
            WorkItem.objects.filter(state="retry").update(run_after=clock.now() + timedelta(hours=1))
            drain_claims()
            let_retries_come_due()
    assert [delay >= 20_000 for delay in delays] == [True] * 4
    assert delays[-1] > 40_000


def test_who_failed_last_does_not_try_a_parked_destination_while_another_waits() -> None:
    ingress = two_destinations(1)
    with recording(), recording("test.api") as api:
        api.raises_for = {"0": AWAY}
        for _ in range(circuit_breaker.FAILURES):
            drain_claims()
            let_retries_come_due()
        assert Destination.objects.get().state == "open"
        ingress.admit(*[change(number, kind="api") for number in range(1, 6)])
        the_pause_is_over()
        WorkItem.objects.filter(source_lane__endswith=":0").update(run_after=clock.now() - timedelta(hours=1))
        first = claim(100, owner="prober", lease_seconds=60)
        assert [one.selected.source_id for one in first.items] != ["0"]
        assert len(first.items) == 1


def test_a_destination_that_is_away_for_everybody_still_uses_no_attempt() -> None:
    """No connection, or everybody is told the same: what got through before it began is no evidence."""
    ingress = two_destinations(3)
    with recording(), recording("test.api") as api:
        drain_claims()
        ingress.admit(*[change(number, kind="api") for number in range(10, 14)])
        fail_always(api, AWAY, 20)
        for _ in range(6):
            drain_claims()
            the_pause_is_over()
        assert set(WorkItem.objects.filter(state="retry").values_list("attempts", flat=True)) == {0}


def test_deferred_tries_in_a_row_are_one_failure_with_their_count_and_the_newest_error() -> None:
    two_destinations(1)
    with recording(), recording("test.api") as api:
        for number in range(1, 8):
            api.raises_for = {"0": Unavailable(f"away for the {number}. time")}
            drain_claims()
            the_pause_is_over()
        api.raises_for = {"0": ValueError("no")}
        drain_claims()
        the_pause_is_over()
        api.raises_for = {"0": RetryLater(1, "later", count_attempt=False)}
        for _ in range(3):
            drain_claims()
            the_pause_is_over()
    rows = WorkFailure.objects.order_by("id").values_list("outcome", "times", "error", "attempt")
    assert list(rows) == [
        ("deferred", 7, "Unavailable: away for the 7. time", 1),
        ("retry", 1, "ValueError: no", 1),
        ("deferred", 3, "later", 2),
    ]
