"""Packs: what Headrace knows about each provider. One folder per provider with the same file names; how to add one: README.md here.

A pack splits a body into items and says what happened to which record. It has no transaction and touches no database.
Begin reading at `github/__init__.py`: `split`, then `read`. May import the pack contract (`pack`, `expressions`, `identity_texts`,
`sample_delivery`) and `signatures`; not the registry's database, nor another pack.
"""
