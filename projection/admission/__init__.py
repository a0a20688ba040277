"""Accepted events become immutable facts and executable work, in one transaction (docs/protocol.md#admitted-transaction).

It joins its caller's: the router's, a replay's, a repair's. The caller has locked the namespace (`admit.lock_admission`). Here a duplicate
is decided (`coverage`), a burst gets its deadline (`settle`) and a key its generation (`generations.decide`, the pure decision).
Begin with `admit.admit`.
May import: `completion` (what blocks a lane) and all below: values, models, `database`, `runtime`, `inputs`, `limits`.
"""
