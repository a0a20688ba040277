-- Statements about event-owned rows (docs/protocol.md#rolling-upgrade). Events are locked before work items, and nowhere else.

-- name: fence_events
-- Before activation: locks the selected, still event-owned facts (before any work item) and moves them to the fence that an old
-- binary sees. Rows with a fresh legacy lease, and those that have ended, stay with the old binary and are not claimed.
UPDATE `_System_ConnectorEvent` FORCE INDEX (PRIMARY)
SET ExecutorOwner = 'work_item', Status = 'skipped', LeaseToken = NULL, LeaseExpiresAt = NULL
WHERE Id IN %(event_ids)s AND ExecutorOwner = 'event' AND TerminalAt IS NULL
  AND (LeaseToken IS NULL OR LeaseExpiresAt <= UTC_TIMESTAMP(6))

-- name: read_event_owners
-- Who owns the facts after the fence, in the same transaction. `event`: a fresh legacy lease, or its end, stays with the old binary.
SELECT Id, ExecutorOwner FROM `_System_ConnectorEvent` WHERE Id IN %(event_ids)s

-- name: lock_legacy_results
-- Locks, by ascending primary key, the event-owned facts that have ended. Missing rows: fenced, or still to be run.
SELECT Id, Status, LastError FROM `_System_ConnectorEvent` FORCE INDEX (PRIMARY)
WHERE Id IN %(event_ids)s AND ExecutorOwner = 'event' AND TerminalAt IS NOT NULL ORDER BY Id FOR UPDATE

-- name: read_unclaimed_work_of
-- Work items that select one of the events and were never claimed. No lock: they are locked by id, and looked at again. Index: ix_work_event.
SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_event)
WHERE EventId IN %(event_ids)s AND State IN ('pending', 'blocked') AND ClaimedAt IS NULL

-- name: end_unclaimed_work_items
-- Ends locked items that nobody has ever executed here. Fewer rows than given cannot be: they are locked.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET State = %(state)s, TerminalAt = UTC_TIMESTAMP(6), ProjectionActiveKey = NULL, LaneHolderKey = NULL
WHERE Id IN %(ids)s AND State IN ('pending', 'blocked') AND ClaimedAt IS NULL
