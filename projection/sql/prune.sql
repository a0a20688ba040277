-- Retention (protocol 8). Candidates are read without locks, locked by ascending id, and every condition is checked again on what
-- is read after the locks.

-- name: read_ended_before
-- Ordinary items that ended before their term, oldest first, behind a position (TerminalAt, Id). No lock. Index: ix_work_terminal.
SELECT TerminalAt, Id, ProjectionKey FROM `_System_ConnectorWorkItem`
WHERE State = %(state)s AND TerminalAt < %(before)s AND (TerminalAt, Id) > (%(after_time)s, %(after_id)s)
  AND TerminalAt >= %(after_time)s AND ReplayOfWorkId IS NULL
ORDER BY TerminalAt, Id LIMIT %(limit)s

-- name: delete_range
-- Ordinary events of a projection from its oldest end through an ordinal. Index: ix_event_range. The events of no other generation.
DELETE FROM `_System_ConnectorEvent`
WHERE ProjectionKey = %(key)s AND EnqueueOrdinal <= %(through)s AND ReplayOfEventId IS NULL

-- name: count_range
-- What `delete_range` would remove, for a dry run. No lock.
SELECT COUNT(*) FROM `_System_ConnectorEvent`
WHERE ProjectionKey = %(key)s AND EnqueueOrdinal <= %(through)s AND ReplayOfEventId IS NULL

-- name: delete_events
-- Events by id, whose items are locked and go with them (or which never had any).
DELETE FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s

-- name: delete_failures
-- The history of items that go.
DELETE FROM `_System_ConnectorWorkFailure` WHERE WorkItemId IN %(ids)s

-- name: delete_work_items
-- Locked, terminal items. Fewer rows than given cannot be.
DELETE FROM `_System_ConnectorWorkItem` WHERE Id IN %(ids)s

-- name: read_old_unrouted_events
-- Facts that no route took, older than their term. Index: primary key range.
SELECT e.Id FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(through)s AND e.RouteId IS NULL AND e.CreatedDate < %(before)s
