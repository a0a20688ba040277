"""Paste an id: everything that it names, step by step, and where the time went.

Reads only. Begin at `views.trace`. May import lists.
"""
