"""A user's own package, outside the project: one pack, four flows, four models."""
