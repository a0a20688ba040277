"""From the wire to the engine, and the operator's verbs over what came.

Folders in the order of a delivery: signatures, packs, ingress, routing. Root: the tables, the contract of packs (`pack`, `delivery`, what
their names need), secrets, audit log. Begin reading at `ingress/view.py`, where a delivery comes in. Each folder's `__init__` says its
step; the layers are contracts in pyproject.toml.
"""
