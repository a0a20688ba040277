"""Bulk jobs: a replay or discard of many items that survives restarts (docs/protocol.md#bulk-jobs).

`jobs` is what operators do to a job, one guarded statement each; its first state is its preview. `membership` reads what it is about and
what each member would come to. `steps` does its work in small transactions, each taken by
compare-and-swap on the job's row, so that any number of processes may try.
Begin with `steps.run_step`; the states are in `job_rows.py`.
May import: `replay` and all below; not `inspection`.
"""
