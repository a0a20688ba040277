"""The Flow contract and its registry.

A flow is a function of one generation (or, with `batch=True`, of a list of them). Outcomes:

- it returns: the item is `processed`;
- it raises `Skip(reason)`: `skipped`; `DeadLetter(reason)`: `dead` at once; `RetryLater(delay)`: `retry` after `delay` seconds;
- it raises `Unavailable(reason)`: `retry`; its destination may be parked;
- it raises anything else: `retry` by the route's policy, `dead` when the budget is used up.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from projection.facts import Input, RouteFacts, Source

DEFAULT_TIMEOUT_SECONDS: Final = 30.0


class FlowOutcome(Exception):
    """Raised by a flow to say what becomes of its generation; not a failure of the worker."""


class Skip(FlowOutcome):
    """There is nothing to do for this generation; it ends as `skipped` with the reason."""


class DeadLetter(FlowOutcome):
    """No retry can help; the item is dead-lettered at once with the reason."""


class RetryLater(FlowOutcome):
    """Try again after `delay` seconds. `count_attempt=False` defers without using the budget, up to the route's GiveUpAfter.

    Raises TypeError or ValueError for a delay that is no number.
    """

    def __init__(self, delay: float, reason: str = "", *, count_attempt: bool = True) -> None:
        self.delay = float(delay)  # here, so that what is no number fails in the flow that gave it
        super().__init__(reason or f"retry in {delay} s")
        self.count_attempt = count_attempt


class Unavailable(FlowOutcome):
    """The destination takes nothing now; once that is plain it is parked, and no more of its work is claimed (`limits/circuit_breaker.py`).

    `certain`: whatever had been sent, so the item is not at fault: nothing of its budget is used, up to the route's GiveUpAfter. Else it
    may be at fault, and the attempt counts unless the destination turns out to be away. `retry_after` (seconds): the destination asked
    everybody to wait, and is parked for that time. Where others get through meanwhile, it is about this item, and the attempt counts.
    """

    answered: bool = True
    """False: no answer came, or it counts requests and asked everybody to wait."""

    def __init__(self, reason: str, *, certain: bool = True, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.certain = certain
        self.retry_after = retry_after


class LeaseLost(FlowOutcome):
    """Another worker took this item over after its lease ran out; nothing of this attempt was written."""


CommitFactory = Callable[["Generation"], AbstractContextManager[None]]


@dataclass(slots=True)
class Generation:
    """What a flow is given.

    `inputs` are all events of the generation in order, `selected` is the last of them and `source` is its record. A lane may be wider
    than a record (a customer's orders): then inputs are about several records, each input names its own, and `sources` lists them.
    `attempt` counts from 1; `deadline` is the worker's clock (aware UTC) at which the flow's time-out strikes. `work_id` is the
    idempotency key for foreign systems.
    """

    work_id: str
    attempt: int
    deadline: datetime
    namespace: str
    route: RouteFacts
    source: Source
    source_lane: str
    selected: Input
    inputs: Sequence[Input]
    projection_key: str | None = None
    replay_of_work_id: str | None = None
    _commit: CommitFactory | None = field(default=None, repr=False)
    completed: bool = field(default=False, repr=False)
    """True once `commit()` has ended the item in its own transaction."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """The records that the inputs are about, each once, in the order of their first input."""
        return tuple(dict.fromkeys(each.source for each in self.inputs))

    @contextmanager
    def commit(self) -> Iterator[None]:
        """Atomic tail of a flow that first called the network: what is written inside commits with the item's end, or not at all.

        Raises LeaseLost (and rolls back) when the lease went to another worker meanwhile.
        """
        if self._commit is None:
            raise RuntimeError(
                "commit() is only for plain flows; an atomic flow commits together with its completion, so remove the call"
            )
        with self._commit(self):
            yield
        self.completed = True


@dataclass(frozen=True, slots=True)
class Flow:
    """A registered flow. `timeout` is seconds; `destination` names what it calls, for limits per destination."""

    name: str
    run: Callable[..., object]
    atomic: bool = False
    batch: bool = False
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    destination: str | None = None


class DuplicateFlow(ValueError):
    """Two modules register a flow of the same name; rename one of them."""


class NotAFlow(TypeError):
    """What was given to `flow` would never run when it is called; the message says what to write instead."""


_registry: dict[str, Flow] = {}
F = TypeVar("F", bound=Callable[..., object])


def flow(
    name: str,
    *,
    atomic: bool = False,
    batch: bool = False,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    destination: str | None = None,
) -> Callable[[F], F]:
    """Register a function as flow `name` (see the module).

    Raises DuplicateFlow for a name that another function has, NotAFlow for `@flow` without a name and for a function whose call only
    makes a coroutine or a generator.
    """
    if not isinstance(name, str):
        raise NotAFlow(f'@flow has no name; write @flow("{getattr(name, "__name__", "acme.order")}")')

    def register(function: F) -> F:
        _check_runs(name, function)
        known = _registry.get(name)
        if known is not None and (known.run.__module__, known.run.__qualname__) != (function.__module__, function.__qualname__):
            raise DuplicateFlow(f"flow {name!r} is defined by {known.run.__module__} and again by {function.__module__}")
        _registry[name] = Flow(name, function, atomic=atomic, batch=batch, timeout=timeout, destination=destination)
        return function

    return register


def _check_runs(name: str, function: Callable[..., object]) -> None:
    """Raises NotAFlow for a function whose call would end at once, without a line of it executed."""
    plain = inspect.unwrap(function)
    while isinstance(plain, functools.partial):
        plain = plain.func
    if not callable(plain) or inspect.isclass(plain):
        raise NotAFlow(f"flow {name!r} is not a function")
    call = plain if inspect.isroutine(plain) else type(plain).__call__
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        raise NotAFlow(f"flow {name!r} is an async function; write it with `def` (inside, asyncio.run may run async code)")
    if inspect.isgeneratorfunction(call):
        raise NotAFlow(f"flow {name!r} is a generator; write it without `yield`")


def run(flow: Flow, given: object) -> None:
    """Call a flow with its generation, or with a list of them (`batch`). Raises NotAFlow when it returns work that was never done."""
    made = flow.run(given)
    if inspect.isawaitable(made) or inspect.isgenerator(made) or inspect.isasyncgen(made):
        if inspect.iscoroutine(made):
            made.close()
        raise NotAFlow(
            f"flow {flow.name!r} returned a {type(made).__name__} instead of running; await or iterate it inside the flow"
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that a flow raised, for error trackers. `error` is the exception itself: nothing of it is masked."""

    error: BaseException
    flow: str
    namespace: str
    route: str
    work_id: str
    attempt: int
    is_dead: bool
    """No attempt follows."""


Hook = TypeVar("Hook", bound=Callable[[Failure], object])
_failure_hooks: Final[list[Callable[[Failure], object]]] = []


def on_failure(hook: Hook) -> Hook:
    """Register a function that is called for each attempt that ends with an exception, in the thread of the flow.

    Not for `Skip`, `DeadLetter`, `RetryLater` and `Unavailable`: these say what becomes of the work. It must be quick and must not use the
    database. What it raises is logged, and changes nothing.
    """
    _failure_hooks.append(hook)
    return hook


def failure_hooks() -> tuple[Callable[[Failure], object], ...]:
    """The registered hooks."""
    return tuple(_failure_hooks)


def registered() -> dict[str, Flow]:
    """Every flow of this process, by name."""
    return dict(_registry)


def flows_hash() -> str:
    """Digest of the registered names, so that an operator sees which workers lack a flow."""
    return hashlib.sha256("\n".join(sorted(_registry)).encode()).hexdigest()


def find(name: str) -> Flow | None:
    """The flow of this name; None: this process does not have it."""
    return _registry.get(name)


def forget(name: str) -> None:
    """Take a flow out again (tests)."""
    _registry.pop(name, None)
