"""The steps of a history: each does one thing to the product and the same to the reference, and compares the answers.

Plain values of small numbers, so that a failing history can be made short and written down as a regression test. Where there is
nothing that a step can be done to, it does nothing.
"""

from __future__ import annotations

from tests.model.attempts import ENDS, Advance, Beat, Claim, End, Rescue, StepBack, Zombie
from tests.model.deliveries import (
    Activate,
    BeforeActivation,
    Deliver,
    OldBinaryEnds,
    OldBinaryLeases,
    OldBinaryWrites,
    One,
    Repair,
    RouteReceipts,
    Sweep,
)
from tests.model.operations import (
    Cancel,
    Discard,
    Hold,
    Pause,
    Prune,
    Release,
    Replay,
    Resume,
    RetireRoute,
    RetryNow,
    UpgradePack,
    UpgradeRoute,
)

Step = (
    Deliver | RouteReceipts | Sweep | Repair | BeforeActivation | Activate | OldBinaryWrites | OldBinaryLeases | OldBinaryEnds
    | Claim | End | Zombie | Beat | Rescue | Advance | StepBack
    | Cancel | Discard | RetryNow | Replay | Hold | Release | Pause | Resume | UpgradeRoute | RetireRoute | UpgradePack | Prune
)  # fmt: skip

__all__ = [
    "ENDS", "Activate", "Advance", "Beat", "BeforeActivation", "Cancel", "Claim", "Deliver", "Discard", "End", "Hold", "OldBinaryEnds",
    "OldBinaryLeases", "OldBinaryWrites", "One", "Pause", "Prune", "Release", "Repair", "Replay", "Rescue", "Resume", "RetireRoute",
    "RetryNow", "RouteReceipts", "Step", "StepBack", "Sweep", "UpgradePack", "UpgradeRoute", "Zombie",
]  # fmt: skip
