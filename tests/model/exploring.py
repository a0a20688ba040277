"""Many random histories from one seed."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.model.history import histories, play
from tests.model.steps import Step
from tests.model.world import Beginning


def explore(beginning: Beginning, from_seed: int, sequences: int, *, shrink: bool = True) -> None:
    """Play `sequences` histories, always the same ones for a seed. Raises the disagreement of the first that fails, shrunk."""

    @seed(from_seed)
    @settings(
        max_examples=sequences,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(histories())
    def agree(steps: list[Step]) -> None:
        play(beginning, steps)

    agree()
