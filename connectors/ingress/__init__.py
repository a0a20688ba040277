"""Ingress: from a provider's request to a committed receipt, in four steps: accept, read the body, verify, store.

The receipt is one INSERT, committed by itself before the answer; nothing else is written or locked, and nothing is routed here. While
the database is unavailable, `spool/` keeps deliveries on this host. Begin reading at `view.ingress`, then `accept`, `body`, `verify`,
`store`. May import root, signatures, the pack contract and the registry; nothing of configuration, routing or operations.
"""
