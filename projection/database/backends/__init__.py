"""Django's database engines with connections that last: what the server dropped, or what leads to the wrong server, is opened again.

`lasting.py` is the one addition; a folder for each engine puts it in front of that engine's own wrapper, under the path that `ENGINE`
names. Opens connections, never a transaction. Begin with `lasting.LastingMixin`.
May import: `projection.database`.
"""
