"""Bulk replay and discard: from a selection to its preview, to a durable job and the result of each item.

Reads; the actions call verbs, which have their own transactions. Begin at `views.listing`. May import lists and dead_letters.
"""
