"""What may not start now: pauses, rate and concurrency limits, parked destinations (docs/protocol.md#availability).

`availability` is the one reader: claim, health and "why" ask it. Slots and places are taken in the claim's transaction; the breaker and a
late attempt's slot are units of their own. Locks: destinations, then limits, then (elsewhere) work items, each by ascending id.
Begin with `availability.py`; the pure decision of the breaker is `circuit_breaker.after`.
May import: values, models, `database` and `runtime` (to wake the workers).
"""
