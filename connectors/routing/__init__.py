"""Routing: pending receipts become admitted events, by the routes in force.

A batch of one namespace is read outside any transaction, then admitted in one, fenced against packs and routes that changed meanwhile; a
receipt that keeps failing is quarantined. Begin reading at `router.route_batch`, then `reading.read_receipt`. `sweep` routes what had no
route on arrival, `dry_run` only looks. May import root, the pack contract, registry, configuration, and the engine's admission.
"""
