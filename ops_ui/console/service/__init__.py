"""What keeps it running: workers, destinations, limits, pauses and holds.

Reads; the actions call verbs, which have their own transactions. Begin at `stops` and `workers`. May import lists.
"""
