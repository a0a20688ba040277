"""What arrived, byte for byte, and what became of each item; also deliveries whose signature failed.

Reads; `reroute_receipt` calls the verb, which has its own transaction. Begin at `views.listing`. May import lists and payloads.
"""
