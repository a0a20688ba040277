"""What operators do to single items: replay or discard what is dead, cancel or retry now what waits (docs/protocol.md#replay).

Each verb is a unit of its own, with a `note` that writes the audit entry in the same transaction; `replay_locked` and `discard_locked` join
a bulk job's step. `decision` is pure, and preview and replay both decide by it.
Begin with `replay.replay_many`, and the reasons for a refusal in `decision`.
May import: `admission`, `completion`, `retention` (what is erased) and all below; not `execution`.
"""
