"""What is configured: packs, endpoints, routes, connections, and how a first delivery arrives.

Reads; each change is one transaction of connectors.configuration. Begin at `endpoints.listing`. May import lists.
"""
