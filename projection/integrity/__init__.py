"""Proof that nothing was lost or doubled, and repair of what only a fault can leave behind (docs/protocol.md#invariants).

`invariants.audit` reads pages of one snapshot each, locks nothing and writes nothing. `repair` checks each candidate again in a unit that
takes the namespace first, like the router.
Begin with `invariants.INVARIANTS`, the list of what always holds.
May import: `admission`, `completion` and all below; not `claiming` or `retention`.
"""
