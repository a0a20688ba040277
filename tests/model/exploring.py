"""Many random histories: Hypothesis draws them, the first that fails is made short."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.model.beginning import Beginning
from tests.model.history import Disagreement, play, play_random
from tests.model.shorten import shorten
from tests.model.steps import Step

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
"""A history is dozens of transactions, and is meant to be long."""


def draw(beginning: Beginning, number: int, histories: int) -> None:
    """Play so many histories, the same ones for the same number. Raises Disagreement for the first that fails.

    All choices come from one `Random` of Hypothesis and are independent of each other. (Drawn from strategies one by one, most
    histories would be variations of the one before, and faults that need five steps in a row were not found in hundreds of them.)
    """

    @seed(number)
    @settings(
        max_examples=histories,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=SLOW,
    )
    @given(st.randoms(use_true_random=False))
    def play_one(random: Random) -> None:
        play_random(beginning, random)

    play_one()


def explore(beginning: Beginning, number: int, histories: int) -> None:
    """As `draw`; the one that fails is raised as it fails when it is made short, after a line that plays it again."""
    try:
        draw(beginning, number, histories)
    except Disagreement as found:
        short = shorten(found.steps, lambda steps: _fails(beginning, steps))
        print(f"number {number}: play(beginning, {short})")  # noqa: T201 - pytest shows it with the failure
        play(beginning, short)
        raise


def _fails(beginning: Beginning, steps: Sequence[Step]) -> bool:
    try:
        play(beginning, steps)
    except Exception:  # noqa: BLE001 - whatever goes wrong is what is looked for
        return True
    return False
