-- name: read_settle_deadlines
-- Earliest deadline still in the future of each of at most 256 requested projections; no lock. Index: ix_event_burst (not forced). MIN
-- keeps the column's own precision. No row for a key: no burst is open.
SELECT ProjectionKey, MIN(NextAttemptAt) FROM `_System_ConnectorEvent`
WHERE ProjectionKey IN %(keys)s AND NextAttemptAt > %(now)s GROUP BY ProjectionKey
