-- What operators do to dead items.

-- name: discard_work_items
-- Under the items' locks, which say that they are dead and not discarded: fewer rows than given cannot be.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET DiscardedAt = UTC_TIMESTAMP(6), DiscardedBy = %(actor)s, DiscardReason = %(reason)s
WHERE Id IN %(ids)s AND State = 'dead' AND DiscardedAt IS NULL

-- name: restore_work_items
-- Under the items' locks, which say that they are dead and discarded: fewer rows than given cannot be.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET DiscardedAt = NULL, DiscardedBy = NULL, DiscardReason = NULL
WHERE Id IN %(ids)s AND State = 'dead' AND DiscardedAt IS NOT NULL

-- name: read_replay_states
-- The replay of each given item: (replayed WorkId, replay's WorkId, state). Index: unique ReplayOfWorkId. No row: never replayed.
SELECT ReplayOfWorkId, WorkId, State FROM `_System_ConnectorWorkItem` WHERE ReplayOfWorkId IN %(work_ids)s

-- name: retry_work_item_now
-- Compare-and-swap: ends the wait of an item that waits to retry; it keeps its lane and its attempts. 0 rows: it does not wait.
UPDATE `_System_ConnectorWorkItem` SET RunAfter = UTC_TIMESTAMP(6)
WHERE WorkId = %(work_id)s AND State = 'retry' AND RunAfter > UTC_TIMESTAMP(6)
