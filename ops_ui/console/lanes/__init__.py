"""Order domains: what is in front, how much waits behind, who holds them.

Reads only (hold and release are in service). Begin at `views.listing`. May import lists.
"""
