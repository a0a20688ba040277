"""Executable work: its range of events, attempts, neighbours, replays; two generations compared; retry now and cancel.

Reads; the actions call verbs, which have their own transactions. Begin at `views.listing`. May import lists and payloads.
"""
