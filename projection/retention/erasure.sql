-- Erasure: facts and work of a person become tombstones. Writes stand under the namespace lock, which keeps admission, replay and repair
-- out; items are written before events, as retention deletes them.

-- name: read_open_work
-- Work that may still need what the events say: nonterminal, or dead and neither discarded nor replayed; of their projections, and of the
-- lineages {ids} that take them, wherever a retarget has brought those. No lock, at most a number.
-- Its indexes are forced: with exact statistics MariaDB still scanned all work items instead of six look-ups.
SELECT DISTINCT o.WorkId, o.State FROM (
  SELECT w.WorkId, w.State, w.DiscardedAt FROM `_System_ConnectorEvent` e
  STRAIGHT_JOIN `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_current) ON w.ProjectionKey = e.ProjectionKey
    AND w.State IN ('pending', 'blocked', 'processing', 'retry', 'dead')
  WHERE e.Id IN %(event_ids)s
  UNION ALL
  SELECT w.WorkId, w.State, w.DiscardedAt FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_event)
  WHERE w.EventId IN %(event_ids)s AND w.State IN ('pending', 'blocked', 'processing', 'retry', 'dead')
  UNION ALL
  SELECT w.WorkId, w.State, w.DiscardedAt FROM `_System_ConnectorWorkItem` w FORCE INDEX (PRIMARY)
  WHERE w.Id IN %(ids)s AND w.State IN ('pending', 'blocked', 'processing', 'retry', 'dead')) o
WHERE o.State <> 'dead'
  OR (o.DiscardedAt IS NULL AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorWorkItem` r WHERE r.ReplayOfWorkId = o.WorkId))
ORDER BY o.WorkId LIMIT %(limit)s

-- name: read_erased_work
-- Of each item: whether it selects a tombstone, whether (an ordinary generation) it has one in its range by ordinals, and whether its
-- projection has rows from before ordinals, where bounds prove nothing. No lock. Index: ix_event_range.
SELECT w.Id, e.ErasureId IS NOT NULL,
  w.ReplayOfWorkId IS NULL AND EXISTS (
    SELECT 1 FROM `_System_ConnectorEvent` x FORCE INDEX (ix_event_range)
    WHERE x.ProjectionKey = w.ProjectionKey AND x.EnqueueOrdinal <= w.LaneOrdinal AND x.ErasureId IS NOT NULL
      AND x.EnqueueOrdinal > COALESCE((
        SELECT p.LaneOrdinal FROM `_System_ConnectorWorkItem` p
        WHERE p.ProjectionKey = w.ProjectionKey AND p.LaneOrdinal < w.LaneOrdinal AND p.ReplayOfWorkId IS NULL
        ORDER BY p.ProjectionKey DESC, p.LaneOrdinal DESC LIMIT 1), -1)),
  EXISTS (SELECT 1 FROM `_System_ConnectorEvent` z WHERE z.ProjectionKey = w.ProjectionKey AND z.EnqueueOrdinal = 0)
FROM `_System_ConnectorWorkItem` w JOIN `_System_ConnectorEvent` e ON e.Id = w.EventId
WHERE w.Id IN %(ids)s

-- name: read_tombstones_of
-- Which of the events are tombstones. No lock.
SELECT Id FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s AND ErasureId IS NOT NULL

-- name: blank_errors
-- Terminal items that took the events: what their errors quote. Rows by primary key.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET LastError = %(text)s
WHERE Id IN %(ids)s AND LastError IS NOT NULL AND LastError <> %(text)s

-- name: blank_failures
-- The failures of these items. Index: ux_failure_attempt.
UPDATE `_System_ConnectorWorkFailure` SET Error = %(text)s, Frames = NULL
WHERE WorkItemId IN %(ids)s AND Error <> %(text)s

-- name: blank_lanes
-- The readable lane of items that select one of the events, each its own; LaneKey stays. Rows by primary key.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET SourceLane = {SourceLane} WHERE Id IN %s AND SourceLane <> ''

-- name: read_selecting_lanes
-- Items that select one of the events, and what their readable lane becomes. No lock: their events change with them alone.
-- Index: ix_work_event.
SELECT w.Id, CONCAT('erased:', e.SourceKey) FROM `_System_ConnectorWorkItem` w
JOIN `_System_ConnectorEvent` e ON e.Id = w.EventId WHERE w.EventId IN %(event_ids)s

-- name: erase_events
-- The tombstone: ids, keys, order and hashes stay, payload and readable names go. Rows by primary key. Fewer rows than given: some
-- were tombstones already.
UPDATE `_System_ConnectorEvent` FORCE INDEX (PRIMARY)
SET Payload = '', LastError = NULL, SourceId = CONCAT('erased:', SourceKey),
    SourceLane = CASE WHEN SourceLane = '' THEN '' ELSE CONCAT('erased:', SourceKey) END,
    TargetMutationLane = CASE WHEN TargetMutationLane = '' THEN '' ELSE CONCAT('erased:', SourceKey) END,
    ErasureId = %(erasure_id)s
WHERE Id IN %(ids)s AND ErasureId IS NULL
