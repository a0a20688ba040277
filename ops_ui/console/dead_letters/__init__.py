"""Work that failed for good: by error and time, with replay and discard of those selected.

Reads; the actions call verbs, which have their own transactions. Begin at `views.listing`. May import lists and generations.
"""
