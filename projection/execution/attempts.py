"""Attempts: one claimed item ready to run, and the pure decision of what becomes of it when its flow raises
(docs/protocol.md#execute)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from projection.completion.retry_policy import Again, after_failure, bounded_delay, delay_seconds
from projection.facts import ITEM_ONLY, Input, Outage
from projection.flows import CommitFactory, DeadLetter, Flow, Generation, RetryLater, Skip
from projection.leases import Claimed, Ending
from projection.limits import route_limits
from projection.limits.destinations import destination_of, outage_of
from projection.masked_errors import without_masked
from projection.safe_text import error_text, message_of, with_reason
from projection.states import State


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claimed item ready to run."""

    claimed: Claimed
    token: str
    owner: str
    flow: Flow
    inputs: Sequence[Input]

    @property
    def lease(self) -> tuple[int, str]:
        """(Work item id, token)."""
        return self.claimed.item.id, self.token

    def generation(self, commit: CommitFactory | None = None) -> Generation:
        """What the flow is given; its deadline counts from now."""
        item, route = self.claimed.item, self.claimed.route
        selected = next(one for one in self.inputs if one.event_id == item.event_id)
        return Generation(
            work_id=item.work_id,
            attempt=item.attempts,
            deadline=datetime.now(UTC) + timedelta(seconds=self.flow.timeout),
            namespace=item.namespace,
            route=route,
            source=selected.source,
            source_lane=item.source_lane,
            selected=selected,
            inputs=self.inputs,
            projection_key=item.projection_key,
            replay_of_work_id=item.replay_of_work_id,
            _commit=commit,
        )

    def ending(self, state: State, **more: Any) -> Ending:
        route = self.claimed.route
        place = route_limits.is_counted(route.id)
        return Ending(
            self.claimed.item, self.token, state, owner=self.owner, destination=destination_of(route), frees_place=place, **more
        )


def hand_back(attempt: Attempt) -> Ending:
    """The end of an attempt that never started: back to `retry`, due at once, without using the budget
    (docs/protocol.md#hand-back).
    """
    return attempt.ending(State.RETRY, give_back=1)


def failure(attempt: Attempt, error: BaseException, outcome: str = "", *, database_away: bool = False) -> Ending:
    """How an attempt that raised ends (`_judged`), without what the error quotes of masked fields."""
    ending = _judged(attempt, error, outcome, database_away=database_away)
    return _discreet(attempt, ending) if attempt.claimed.route.masks else ending


def discreet(attempt: Attempt, text: str) -> str:
    """`text` without what it quotes of fields that the attempt's route masks."""
    return without_masked(text, (one.payload for one in attempt.inputs), attempt.claimed.route.masks)


def _discreet(attempt: Attempt, ending: Ending) -> Ending:
    seen, spared, blamed = ending.seen, ending.spared, ending.blamed
    return replace(
        ending,
        error=discreet(attempt, ending.error),
        seen=replace(seen, reason=discreet(attempt, seen.reason)) if isinstance(seen, Outage) else seen,
        spared=_discreet(attempt, spared) if spared else None,
        blamed=_discreet(attempt, blamed) if blamed else None,
    )


def _judged(attempt: Attempt, error: BaseException, outcome: str, *, database_away: bool) -> Ending:
    """What becomes of an attempt that raised: a pure decision of the error, the route's policy, the attempt and the item's age.

    An outage of which the item is certainly not guilty uses nothing of its budget; where it may be, the ending says how it ends if the
    destination turns out to be away, and how if it lets others through. `database_away`: our own database is, and the error tells of it.
    """
    if isinstance(error, Skip):
        return attempt.ending(State.SKIPPED, outcome="", error=message_of(error))
    if database_away:  # whatever the flow wanted of it
        return _deferred(attempt, error_text(error), _usual_delay(attempt))
    seen = outage_of(error)
    if isinstance(error, DeadLetter):
        return attempt.ending(State.DEAD, outcome="dead", error=message_of(error) or "dead-lettered by its flow", seen=seen)
    if isinstance(error, RetryLater) and not error.count_attempt:
        return _deferred(attempt, message_of(error), error.delay, seen=seen)
    if not isinstance(seen, Outage):
        return _counted(attempt, error, outcome, seen=seen)
    asked = seen.retry_after
    wait = asked if asked is not None else _usual_delay(attempt)
    blamed = _counted(attempt, error, outcome, least=asked or 0.0, seen=ITEM_ONLY) if seen.answered else None
    spared = _deferred(attempt, error_text(error), wait, seen=seen, blamed=blamed)
    return spared if seen.certain else _counted(attempt, error, outcome, seen=seen, spared=spared, blamed=blamed)


def _counted(attempt: Attempt, error: BaseException, outcome: str, *, least: float = 0.0, **more: Any) -> Ending:
    """The attempt counts: again by the policy, after `least` seconds at the earliest, or dead."""
    item, policy = attempt.claimed.item, attempt.claimed.route.retry
    text = message_of(error) if isinstance(error, RetryLater) else error_text(error)
    after = after_failure(policy, item.attempts, _age_seconds(attempt))
    if isinstance(after, Again):
        delay = (
            bounded_delay(policy, error.delay) if isinstance(error, RetryLater) else max(after.delay, bounded_delay(policy, least))
        )
        return attempt.ending(State.RETRY, outcome=outcome or "retry", error=text, delay_ms=int(delay * 1000), **more)
    return attempt.ending(State.DEAD, outcome="dead", error=with_reason(text, after.reason), **more)


def _deferred(attempt: Attempt, text: str, wait: float, **more: Any) -> Ending:
    """Again after `wait` seconds without using the budget, up to the route's GiveUpAfter."""
    policy, age = attempt.claimed.route.retry, _age_seconds(attempt)
    if policy.give_up_after is not None and age >= policy.give_up_after:
        return attempt.ending(State.DEAD, outcome="dead", error=with_reason(text, f"given up after {age:.0f} s"), **more)
    delay = bounded_delay(policy, wait)
    return attempt.ending(State.RETRY, outcome="deferred", error=text, delay_ms=int(delay * 1000), give_back=1, **more)


def _usual_delay(attempt: Attempt) -> float:
    try:
        return delay_seconds(attempt.claimed.route.retry, attempt.claimed.item.attempts)
    except ValueError:  # a policy that yields no number
        return 0.0


def _age_seconds(attempt: Attempt) -> float:
    item = attempt.claimed.item
    return (item.claimed_at - item.first_claimed_at).total_seconds() if item.claimed_at and item.first_claimed_at else 0.0
