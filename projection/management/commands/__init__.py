"""`activate_projection` and `run_worker` (docs/commands.md)."""
