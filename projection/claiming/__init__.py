"""Due work becomes a worker's own, under a lease with an end; a lease that ran out comes back (docs/protocol.md#claim).

A plain read finds candidates, one compare-and-swap takes them: no lock is held in between, and a row that changed meanwhile is not taken.
`lease` is one unit, and so is `rescue`. What happens to an item whose worker died is in `rescue.py`.
Begin with `claim.claim`.
May import: `admission`, `completion`, `limits` and all below; not `retention` or `integrity`.
"""
