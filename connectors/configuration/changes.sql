-- Statements of configuration changes.

-- name: insert_namespace
-- A namespace at its first use. A second creator waits for the first one's commit, then changes nothing. Locks the namespace's row.
INSERT INTO `_System_ConnectorNamespace` (Name, NextEnqueueOrdinal) VALUES (%(name)s, 1) ON DUPLICATE KEY UPDATE Name = Name
