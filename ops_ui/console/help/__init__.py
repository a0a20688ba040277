"""The glossary and the keyboard shortcuts.

Reads nothing. Begin at `views`. May import base.
"""
