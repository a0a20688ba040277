-- What operators do to single work items. (Hold and release are in lanes.sql, cancel in complete.sql.)

-- name: discard_work_items
-- Under the items' locks, which say that they are dead and not discarded: fewer rows than given cannot be.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET DiscardedAt = UTC_TIMESTAMP(6), DiscardedBy = %(actor)s, DiscardReason = %(reason)s
WHERE Id IN %(ids)s AND State = 'dead' AND DiscardedAt IS NULL

-- name: read_replay_states
-- The replay of each given item: (replayed WorkId, replay's WorkId, state). Index: unique ReplayOfWorkId. No row: never replayed.
SELECT ReplayOfWorkId, WorkId, State FROM `_System_ConnectorWorkItem` WHERE ReplayOfWorkId IN %(work_ids)s

-- name: read_work_items
-- Work items as they stand, for previews. No lock. Missing rows: not retained.
SELECT {work_columns} FROM `_System_ConnectorWorkItem` WHERE Id IN %(ids)s

-- name: retry_work_item_now
-- Compare-and-swap: ends the wait of an item that waits to retry; it keeps its lane and its attempts. 0 rows: it does not wait.
UPDATE `_System_ConnectorWorkItem` SET RunAfter = UTC_TIMESTAMP(6)
WHERE WorkId = %(work_id)s AND State = 'retry' AND RunAfter > UTC_TIMESTAMP(6)

-- name: read_items_of_source
-- Work items in some states whose selected event has a source id. Index: ix_event_source, then ix_work_event. The caller compares the
-- texts again, exactly.
SELECT w.Id, e.SourceType, e.SourceId
FROM `_System_ConnectorEvent` e JOIN `_System_ConnectorWorkItem` w ON w.EventId = e.Id
WHERE e.SourceId IN %(source_ids)s AND w.State IN %(states)s ORDER BY w.Id DESC LIMIT %(limit)s
