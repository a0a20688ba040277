"""Flows for tests: they record what they were given, do what the test tells them, and fail as told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from connectors.models import Namespace
from projection import flows
from projection.flows import Generation


@dataclass
class Recorder:
    """What a test flow saw: one entry per execution of a generation."""

    runs: list[tuple[str, int, list[int]]] = field(default_factory=list)
    """(WorkId, attempt, input ordinals)."""
    sources: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    """Generations of each call: 1 but for batch flows."""
    acts: list[Callable[[Generation], object]] = field(default_factory=list)
    """Done by the next executions, first come first served, before they raise."""
    raises: list[BaseException | None] = field(default_factory=list)
    """Raised by the next executions, first come first served; None: this one returns."""
    raises_for: dict[str, BaseException] = field(default_factory=dict)
    """Raised by every execution of a source."""

    def __call__(self, given: Generation | list[Generation]) -> None:
        generations = given if isinstance(given, list) else [given]
        self.calls.append(len(generations))
        for generation in generations:
            self._run(generation)

    def _run(self, generation: Generation) -> None:
        self.runs.append((generation.work_id, generation.attempt, [one.ordinal for one in generation.inputs]))
        self.sources.append(generation.source.id)
        if self.acts:
            self.acts.pop(0)(generation)
        error = self.raises.pop(0) if self.raises else self.raises_for.get(generation.source.id)
        if error is not None:
            raise error

    @property
    def inputs(self) -> list[int]:
        """Ordinals of all inputs of all executions, in the order of execution."""
        return [ordinal for _, _, ordinals in self.runs for ordinal in ordinals]


@contextmanager
def recording(name: str = "test.record", **options: object) -> Iterator[Recorder]:
    """Register a recording flow under `name` for the time of the block."""
    recorder = Recorder()

    def run(generation: Generation) -> None:
        recorder(generation)

    flows.flow(name, **options)(run)
    try:
        yield recorder
    finally:
        flows.forget(name)


def write(generation: Generation) -> None:
    """A flow's own write to the database: a row that can be written only once (a namespace, for want of a table of our own)."""
    Namespace.objects.create(name=f"written by {generation.work_id[-40:]}")


def written() -> int:
    """Rows that `write` left."""
    return Namespace.objects.filter(name__startswith="written by ").count()
