"""Lists of large tables: pages by position, filters, cells, exports, charts.

Plain reads, each by an index or within a bounded window. Begin at `keyset.page`. May import base.
"""
