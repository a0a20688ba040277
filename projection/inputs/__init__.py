"""Which events belong to which work: the inputs of a generation, and the replays behind it (docs/protocol.md#ranges).

Plain reads, in their caller's transaction or in none; nothing is locked or written, and the number of statements grows with chunks.
Begin with `ranges.read_inputs`, which gives the worker what a flow gets; `lineage` reads the same for people, as ids and counts.
May import: values, models and `database`.
"""
