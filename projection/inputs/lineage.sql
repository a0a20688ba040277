-- Which work items took an event, and which events a work item takes: index reads for people (trace, work show), no locks.

-- name: read_selecting_items
-- Work items that select one of the events: per-event items, generations, replays. Index: ix_work_event.
SELECT Id FROM `_System_ConnectorWorkItem` WHERE EventId IN %(event_ids)s ORDER BY Id LIMIT %(limit)s

-- name: read_generation_at
-- The first ordinary generation at or after an ordinal of a projection: the one whose inputs an event of that ordinal is among. Sent for
-- many events as one UNION ALL. Index: ix_work_coverage, one row. 0 rows: its task is missing, or it is from before ordinals.
(SELECT %s AS EventId, g.Id FROM `_System_ConnectorWorkItem` g
 WHERE g.ProjectionKey = %s AND g.LaneOrdinal >= %s AND g.LaneOrdinal > 0 AND g.ReplayOfWorkId IS NULL
 ORDER BY g.LaneOrdinal, g.EventId LIMIT 1)

-- name: read_generation_by_time
-- As read_generation_at where the event or the generations have no ordinal: by ingress time. Index: ix_work_coverage by key.
(SELECT %s AS EventId, g.Id FROM `_System_ConnectorWorkItem` g
 WHERE g.ProjectionKey = %s AND (g.EventCreatedDate, g.DeliverySequence, g.EventId) >= (%s, %s, %s) AND g.ReplayOfWorkId IS NULL
 ORDER BY g.LaneOrdinal, g.EventId LIMIT 1)

-- name: read_receipt_event_ids
-- Newest events of one receipt, at most a limit. Sent for many receipts as one UNION ALL. Index: ix_event_receipt, backwards.
(SELECT Id FROM `_System_ConnectorEvent` WHERE ReceiptId = %s ORDER BY ReceiptId DESC, Id DESC LIMIT %s)

-- name: read_replays
-- The replay of each given item, if it has one. Index: unique ReplayOfWorkId.
SELECT WorkId, Id FROM `_System_ConnectorWorkItem` WHERE ReplayOfWorkId IN %(work_ids)s

-- name: read_range_bounds
-- For each ordinary generation: its key, the greatest ordinary selection below its own (NULL: none) and its own. Index: ix_work_coverage.
SELECT g.Id, g.ProjectionKey,
  (SELECT p.LaneOrdinal FROM `_System_ConnectorWorkItem` p
   WHERE p.ProjectionKey = g.ProjectionKey AND p.LaneOrdinal < g.LaneOrdinal AND p.ReplayOfWorkId IS NULL
   ORDER BY p.ProjectionKey DESC, p.LaneOrdinal DESC LIMIT 1),
  g.LaneOrdinal
FROM `_System_ConnectorWorkItem` g WHERE g.Id IN %(ids)s AND g.ProjectionKey IS NOT NULL AND g.ReplayOfWorkId IS NULL

-- name: read_range_event_ids
-- Newest events of one range, at most a limit. Sent for many ranges as one UNION ALL. Index: ix_event_range.
(SELECT Id FROM `_System_ConnectorEvent`
 WHERE ProjectionKey = %s AND EnqueueOrdinal > %s AND EnqueueOrdinal <= %s AND ReplayOfEventId IS NULL AND RouteId IS NOT NULL
 ORDER BY EnqueueOrdinal DESC, Id DESC LIMIT %s)

-- name: read_range_size
-- How many events one range has, and the first and last ordinal of them. Index: ix_event_range.
SELECT COUNT(*), MIN(EnqueueOrdinal), MAX(EnqueueOrdinal) FROM `_System_ConnectorEvent`
WHERE ProjectionKey = %(key)s AND EnqueueOrdinal > %(after)s AND EnqueueOrdinal <= %(through)s
  AND ReplayOfEventId IS NULL AND RouteId IS NOT NULL
