"""Measured workloads of `bench` (docs/measuring.md). Each runs in a database of its own and checks every row.

Nothing of the product imports this. Begin reading at `workbench.own_database`, then at the workload: `ingress`, `sc400`, `drain`, `wake`,
`memory`; `history` fills the configured database to look at. May import every folder but `management`, `demo` and `testing`.
"""
