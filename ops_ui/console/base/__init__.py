"""What every page knows: navigation, glossary, labels, time zone, read-only mode, template tags.

Values and small reads, no transaction. Begin at `navigation`. Imports no other folder of the console.
"""
