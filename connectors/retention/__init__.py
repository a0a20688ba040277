"""Retention: what leaves the database, by age (`prune`) or because a person's data must go (`erase`).

Small transactions under the namespace's lock, each of which checks again that nothing needs what it takes; a run that ends early is
started again. Erasure leaves tombstones that name its audit entry, which is written first. Begin reading at `maintenance.prune_if_due`
or `erase.erase_source`. May import everything below: root to operations, and the engine's retention.
"""
