"""Who did what, when and why.

Reads of an append-only table, one index for each filter. Begin at `views.listing`. May import lists.
"""
