-- Does the database take writes?

-- name: probe_writes
-- Changes nothing, ever: no row has this id (0 rows). Locks nothing. A server that is read-only for us refuses it all the same.
UPDATE `_System_ConnectorProjectionProtocol` SET ActivatedBy = ActivatedBy WHERE Id = 0

-- name: probe_space_of_receipts
-- Rolled back, always. A table that each delivery makes longer: others may still have space of their own when the disk is full. Rows of
-- half a page, so that pages are split as those of real rows are: only a split finds out that a table has less than it must keep free.
-- Ids below zero move no counter, and are others each time, so that probes never wait for each other. IGNORE: every other column has
-- the value that its type begins with.
INSERT IGNORE INTO `_System_ConnectorReceipt` (`Id`, `ConflictHash`, `Body`)
VALUES
  (-1 - FLOOR(RAND() * 1e15), REPLACE(UUID(), '-', ''), REPEAT('x', 7500)),
  (-1 - FLOOR(RAND() * 1e15), REPLACE(UUID(), '-', ''), REPEAT('x', 7500)),
  (-1 - FLOOR(RAND() * 1e15), REPLACE(UUID(), '-', ''), REPEAT('x', 7500)),
  (-1 - FLOOR(RAND() * 1e15), REPLACE(UUID(), '-', ''), REPEAT('x', 7500))

-- name: probe_space_of_events
-- As for receipts.
INSERT IGNORE INTO `_System_ConnectorEvent` (`Id`, `DeliveryKey`, `Payload`)
VALUES
  (-1 - FLOOR(RAND() * 1e15), REPLACE(UUID(), '-', ''), REPEAT('x', 7500)),
  (-1 - FLOOR(RAND() * 1e15), REPLACE(UUID(), '-', ''), REPEAT('x', 7500)),
  (-1 - FLOOR(RAND() * 1e15), REPLACE(UUID(), '-', ''), REPEAT('x', 7500)),
  (-1 - FLOOR(RAND() * 1e15), REPLACE(UUID(), '-', ''), REPEAT('x', 7500))

-- name: read_stored_table
-- A table of this database whose rows are on the disk: one in memory has a limit of its own.
SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %(name)s AND ENGINE <> 'MEMORY'
