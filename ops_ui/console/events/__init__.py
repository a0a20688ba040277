"""The immutable facts: payload, order, and the work that each became.

Reads only. Begin at `views.listing`. May import lists, payloads and generations.
"""
