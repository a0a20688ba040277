"""The soak's own package, outside the project: flows of each form that keep account of what they were given."""
