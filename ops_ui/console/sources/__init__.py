"""The records of providers: which sent something lately, the timeline of one, and its live record.

Reads only. Begin at `views.listing`. May import lists, lanes and payloads.
"""
