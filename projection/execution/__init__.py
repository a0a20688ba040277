"""Claimed work runs: flows in threads or in the worker's own transaction, under a heartbeat (docs/protocol.md#execute).

A plain flow runs outside of any transaction and is completed in a batch; an atomic flow shares one with its completion. A flow past its
timeout is given up, and its process leaves once it has nothing else to do.
Begin with `worker.ClaimWorker.step`: it gives attempts to the `dispatcher`, which has an executor for each kind and writes what ended.
May import: `claiming`, `completion`, `limits` and all below; not `replay`.
"""
