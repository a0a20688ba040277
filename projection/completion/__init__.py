"""The end of an attempt, and what follows it: the next generation and the next of the lane (docs/protocol.md#complete).

`complete.complete` is a unit of its own; `complete.end_attempts` joins the transaction of an atomic flow. Both write only under the lease
that the attempt had. `lanes` says which work blocks which, for every step that makes or ends work; `retry_policy` is the pure decision.
Begin with `complete.end_attempts`.
May import: values, models, `database`, `runtime`, `inputs` and `limits`.
"""
