"""How a statement reaches the server, what its errors mean, and what makes a unit of work.

Nothing here knows of events or work. `transactions.run_unit` is the one way into a transaction: it commits whole or not at all, and is
tried again whole on a conflict. Begin with it, then read `catalogue.py` (named statements), `outages.py` (is it the database's trouble?)
and `clock.py` (the database's clock is the only clock).
May import: values (`logs`, `safe_text`) only.
"""
