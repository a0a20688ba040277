"""The engine for TiDB: `ENGINE = projection.database.backends.tidb` (Django looks for `base.DatabaseWrapper`)."""
