"""Measured workloads (design `acceptance.md`, Speed): `bench sc400`. Each runs in a database of its own and checks every row."""
