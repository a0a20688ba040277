"""How far a bulk job is: shares of a bar, sentences, and what keeps it. Pure functions of a job as read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from projection.bulk.job_rows import JobKind, JobRow, JobState
from projection.states import NONTERMINAL, State

DONE: Final = {JobKind.REPLAY.value: "replayed", JobKind.DISCARD.value: "discarded"}
PARTS: Final = ("done", "refused", "skipped", "deferred")
"""In the order in which the bar shows them; what is left of it waits."""


class Counted(Protocol):
    """The counts of a job, as row or as model."""

    @property
    def kind(self) -> str: ...
    @property
    def total(self) -> int: ...
    @property
    def done(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def deferred(self) -> int: ...
    @property
    def skipped(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Share:
    """One colour of the bar: from `x` on, `width` wide, in percent."""

    name: str
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Progress:
    shares: tuple[Share, ...]
    ended: int
    """Items with a final result."""
    waiting: int
    percent: int
    sentence: str


def progress(job: Counted) -> Progress:
    """The bar of a job, and the same in words."""
    counts = {name: int(getattr(job, name)) for name in PARTS}
    shares: list[Share] = []
    x = 0.0
    for name, count in counts.items():
        width = round(100 * count / job.total, 3) if job.total else 0.0
        shares += [Share(name, count, round(x, 3), width)] if count else []
        x += width
    waiting = max(job.total - sum(counts.values()), 0)
    ended = counts["done"] + counts["refused"] + counts["skipped"]
    words = [(counts["done"], DONE[job.kind]), (counts["refused"], "refused"), (counts["skipped"], "skipped")]
    words += [(counts["deferred"], "behind another of their source"), (waiting, "waiting")]
    told = ", ".join(f"{count:,} {word}" for count, word in words if count)
    percent = 100 * ended // job.total if job.total else 0
    return Progress(tuple(shares), ended, waiting, percent, f"{ended:,} of {job.total:,}: {told or 'nothing yet'}")


@dataclass(frozen=True, slots=True)
class Became:
    """Replays that a job made, and how many of them are in each state now; `is_cut`: it made more than these."""

    made: int
    states: Mapping[str, int]
    is_cut: bool = False

    @property
    def live(self) -> int:
        return sum(self.states.get(state.value, 0) for state in NONTERMINAL)

    @property
    def dead(self) -> int:
        return self.states.get(State.DEAD.value, 0)

    @property
    def sentence(self) -> str:
        """Empty where no replay was made."""
        counts = [(self.states.get(name, 0), name) for name in ("processed", "skipped", "cancelled")]
        counts += [(self.live, "waiting or running"), (self.dead, "dead again")]
        counts += [(self.made - sum(self.states.values()), "not kept any more")]
        told = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        which = f"the first {self.made:,} replays" if self.is_cut else f"{self.made:,} replay{'s' if self.made != 1 else ''}"
        return f"Of {which}: {told}." if told else ""


def standing(job: JobRow, routers: int) -> str:
    """Where the job stands, in a sentence; `routers` is the number of live ones, which do its steps."""
    if job.state is not JobState.RUNNING:
        return _stopped(job)
    if not routers:
        return "No router is alive, so nothing does its steps: start script/server."
    if job.fixed is None:
        return "It collects what its filter selects."
    if job.waiting:
        return f"It runs: {_pace(job)}."
    return "It waits for replays to end before others of the same source are replayed; a held or paused lane makes it wait longer."


def _stopped(job: JobRow) -> str:
    if job.state is JobState.PAUSED:
        return "It is paused: nothing more is done until it is resumed."
    if job.state is JobState.CANCELLED:
        return "It was cancelled." if job.finished else "It was cancelled; what is open is being marked as skipped."
    return "It has come to its end." if job.total else "It has come to its end: its filter selected nothing any more."


def _pace(job: JobRow) -> str:
    if not job.rate:
        return "as fast as it goes"
    return f"at most {job.rate:,} a second, so at least {_span(job.waiting / job.rate)} more"


def _span(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"
