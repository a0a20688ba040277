"""Texts that strangers sent: windows of lines, search, masks, comparison, and the audited reveal.

One read each; a reveal writes its audit entry first. Begin at `panels`. May import base and lists.
"""
