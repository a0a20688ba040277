"""Registry: which packs and flows this process has, and which the database asks for.

Runs at start (`autodiscovery.load`) and wherever the code of an installed pack is needed (`installed_packs.of`, kept for 5 s). Reads
single rows outside any transaction, writes none. `scaffold` writes the package of a new pack. Begin reading at `autodiscovery.load`.
May import root and the pack contract; packs and flows only by the names of their packages, because they import the registry.
"""
