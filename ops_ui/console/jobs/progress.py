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
    words += [(counts["deferred"], "waiting for an earlier one of the same record"), (waiting, "waiting")]
    told = ", ".join(f"{count:,} {word}" for count, word in words if count)
    percent = 100 * ended // job.total if job.total else 0
    return Progress(tuple(shares), ended, waiting, percent, f"{ended:,} of {job.total:,}: {told or 'none yet'}")


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
        counts += [(self.live, "waiting or running"), (self.dead, "failed again")]
        counts += [(self.made - sum(self.states.values()), "no longer retained")]
        told = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        which = f"the first {self.made:,} replays" if self.is_cut else f"{self.made:,} replay{'s' if self.made != 1 else ''}"
        return f"Of {which}: {told}." if told else ""


def standing(job: JobRow, routers: int) -> str:
    """Where the job stands, in a sentence; `routers` is the number of live ones, which do its steps."""
    if job.state is not JobState.RUNNING:
        return _stopped(job)
    if not routers:
        return "No router is online to run this job. Start script/server."
    if job.fixed is None:
        return "Collecting the dead letters that match its filter."
    if job.waiting:
        return f"Running, {_pace(job)}."
    return "Waiting for earlier replays of the same record to finish. If this takes long, check for held lanes and paused routes."


def _stopped(job: JobRow) -> str:
    if job.state is JobState.PAUSED:
        return "Paused. Resume the job to continue."
    if job.state is JobState.CANCELLED:
        return "Cancelled." if job.finished else "Cancelled; the remaining items are being marked as skipped."
    return "Finished." if job.total else "Finished: no dead letters matched."


def _pace(job: JobRow) -> str:
    if not job.rate:
        return "without a rate limit"
    return f"at most {job.rate:,} per second, at least {_span(job.waiting / job.rate)} left"


def _span(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"
