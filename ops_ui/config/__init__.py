"""What an installation sets: the environment, the database URL, and the checks that name a mistake before it costs a delivery.

No transaction; a check asks the server and changes nothing. Begin at `environment.read`. Imports nothing else of ops_ui, so that the
start can use it before Django is set up.
"""
