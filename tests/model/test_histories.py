"""Random histories: the product on a real database and the plain program of the protocol agree after every step.

`MODEL_SEQUENCES` (default 100) histories, always the same ones; and a tenth of that from a number of this run, which a failure prints:
`MODEL_SEED=<number>` runs those again.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.model.beginning import Beginning
from tests.model.exploring import explore

SEQUENCES = int(os.environ.get("MODEL_SEQUENCES", "100"))
SHARDS = 4
"""Of equal size, so that pytest-xdist can share them out."""
SEED = int(os.environ.get("MODEL_SEED", "0")) or random.SystemRandom().randrange(10**6, 10**9)
SECONDS = 600 + 2 * SEQUENCES
"""Far above what it takes, also where a failing history is made short."""


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_product_and_reference_agree_after_every_step(beginning: Beginning, shard: int) -> None:
    explore(beginning, shard, -(-SEQUENCES // SHARDS))


@pytest.mark.timeout(SECONDS)
def test_they_agree_on_histories_of_this_run(beginning: Beginning) -> None:
    print(f"MODEL_SEED={SEED}")  # noqa: T201 - shown when it fails: the way to see it again
    explore(beginning, SEED, max(1, SEQUENCES // 10))
