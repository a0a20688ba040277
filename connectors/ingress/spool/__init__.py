"""Spool: verified deliveries wait on this host's disk while the database is unavailable, and then become receipts.

A record is synced to disk before its delivery is answered 202. Draining inserts receipts in small transactions and removes a record
only after the commit; one that is inserted again meets its own identity. Begin reading at `spooling.spool`, then `drain`.
May import the ingress modules that import no spool (`endpoint_facts`, `insert`, `outage`, `metrics`), and root.
"""
