"""The operations console: one folder a page, and what all pages share.

Root: `site` (the URLs), `pages` (the frame and the list of every page), `actions` (what every change needs: right, reason, message),
`headers`, `failures`. Pages read in autocommit; an action calls one verb of connectors, which has its own transaction.
Begin at `site.ConsoleSite`. May import monitoring, connectors and projection.
"""
