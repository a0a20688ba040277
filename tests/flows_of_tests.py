"""Flows for tests: they record what they were given, and fail as told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from projection import flows
from projection.flows import Generation


@dataclass
class Recorder:
    """What a test flow saw: one entry per execution."""

    runs: list[tuple[str, int, list[int]]] = field(default_factory=list)
    """(WorkId, attempt, input ordinals)."""
    sources: list[str] = field(default_factory=list)
    raises: list[BaseException] = field(default_factory=list)
    """Raised by the next executions, first come first served."""

    def __call__(self, generation: Generation) -> None:
        self.runs.append((generation.work_id, generation.attempt, [one.ordinal for one in generation.inputs]))
        self.sources.append(generation.source.id)
        if self.raises:
            raise self.raises.pop(0)

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

    flows.flow(name, **options)(run)  # type: ignore[arg-type]
    try:
        yield recorder
    finally:
        flows.forget(name)
