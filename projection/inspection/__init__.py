"""Answers for people: why an item or a lane is not running, which lanes there are, how much waits.

Bounded reads in no transaction; nothing is locked or written. `why` reads a fixed number of rows, and `why_decision.explain`, which is
pure, puts the answer into one sentence.
Begin with `why.why`.
May import: `execution` (when a worker counts as gone), `limits.availability` and all below; not `bulk`.
"""
