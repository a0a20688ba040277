"""The engine for MySQL and MariaDB: `ENGINE = projection.database.backends.mysql` (Django looks for `base.DatabaseWrapper`)."""
