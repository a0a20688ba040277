"""Flows: the built-in ones, which routes name: `record_table`, `http_forward` and `log`.

The engine calls a flow with a generation. `record_table` is atomic: it writes records in the transaction that completes the work;
`http_forward` and `log` run outside any transaction. Begin reading at `record_table.record_table`, or `http_forward.http_forward`.
May import root, the pack contract, the registry, and of the engine `projection.flows` and values. No other folder of this package.
"""
