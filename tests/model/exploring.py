"""Many random histories."""

from __future__ import annotations

from collections.abc import Iterable

from tests.model.history import Disagreement, play, play_random
from tests.model.shorten import shorten
from tests.model.steps import Step
from tests.model.world import Beginning


def explore(beginning: Beginning, seeds: Iterable[int]) -> None:
    """Play the history of each seed. The first that fails is raised as it fails when it is made short, with a line that plays it again."""
    for seed in seeds:
        try:
            play_random(beginning, seed)
        except Disagreement as found:
            short = shorten(found.steps, lambda steps: _fails(beginning, steps))
            print(f"seed {seed}: play(beginning, {short})")  # noqa: T201 - pytest shows it with the failure
            play(beginning, short)
            raise


def _fails(beginning: Beginning, steps: list[Step]) -> bool:
    try:
        play(beginning, steps)
    except Exception:  # noqa: BLE001 - whatever goes wrong is what is looked for
        return True
    return False
