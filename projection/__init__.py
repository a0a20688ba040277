"""The engine: events become work, work is claimed, executed by flows and brought to its end, exactly once (docs/protocol.md).

The modules here are values and what every folder shares (`facts`, `leases`, `rows`, `states`, `order`, `identity`, `models`), and what
users import: `flows` and `testing`. `tasks` has the path that queued tasks name. A folder is a step, in the order of the data:
`admission`, `claiming`, `execution`, `completion`; its `__init__` says what it may import, and a contract in `pyproject.toml` holds it.
Begin with `admission/admit.py` for the way in, and with `execution/worker.py` for what runs.
"""
