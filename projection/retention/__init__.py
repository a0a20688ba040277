"""What is past its time goes: finished history with its events (docs/protocol.md#retention), and what facts say of a person (#erasure).

`prune` works in small units, oldest first, and goes on where a run that was stopped ended; a dry run only reads. `erasure` joins its
caller's transaction, which holds the namespace.
Begin with `prune.prune`, or with `erasure.erase_facts`.
May import: `admission` (locks, coverage), `inputs` and all below; not `claiming` or `integrity`.
"""
