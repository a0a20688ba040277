"""Configuration: packs, endpoints, connections, routes and pauses are changed here, from the file, a command or the console.

Each change is one transaction under its namespace's lock with its audit entry, or joins its caller's (`change.one_unit`); `apply` makes
those of a whole file one. Begin reading at `apply.apply` for the file, or at the module of the thing: `packs`, `endpoints`, `routes`,
`connections`, `pausing`. May import root, signatures, the pack contract, registry, and `ingress` for the facts and limits of an endpoint.
"""
