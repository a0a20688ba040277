"""A backup of one installation and its way back: dump, spool, manifest.

One consistent read of the database; a restore goes into an empty one or not at all. Begin at `backup.backup` and `restore.restore`.
May import config and start.
"""
