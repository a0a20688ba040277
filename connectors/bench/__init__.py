"""Measured workloads of `bench` (docs/measuring.md). Each runs in a database of its own and checks every row."""
