"""The engine's commands. They call a step and print what it returned; the base of every command is `projection.cli`."""
