"""The first page: is it flowing, what waits, what needs somebody?

Reads only, bounded whatever the tables hold. Begin at `views.overview`. May import lists, dead_letters and lanes.
"""
