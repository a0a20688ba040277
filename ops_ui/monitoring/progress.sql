-- What waits and what moves: read by probes, metrics and alerts, at the cost of a few index steps whatever the tables hold.

-- name: read_queue_classes
-- Every class that a route version names: a few, and the table is as long as what was published.
SELECT DISTINCT QueueClass FROM `_System_ConnectorRoute`

-- name: read_oldest_due_receipt
-- Since when the receipt waits that is due for longest; NULL: none is. Of the oldest 100 pending ones: those that were put off wait for
-- minutes only. Index: ix_receipt_state.
SELECT MIN(x.Due) FROM (
  SELECT COALESCE(r.NextAttemptAt, r.ReceivedAt) AS Due
  FROM `_System_ConnectorReceipt` r FORCE INDEX (ix_receipt_state)
  WHERE r.State = 'pending' ORDER BY r.State, r.ReceivedAt, r.Id LIMIT 100) x
WHERE x.Due <= UTC_TIMESTAMP(6)

-- name: read_oldest_due_work
-- One class and state (`pending` or `retry`): since when the item of each route is due for longest that a worker could take; no row: none is.
-- What nobody may take does not count: items of a held lane, and of one that another item has. (Blocked routes are the reader's business.)
-- Of the 50 that are due for longest, so that any number of held lanes costs the same; where all 50 are of that kind, those behind them are
-- not seen. Index: ix_work_claim, then unique keys.
(SELECT %s AS State, %s AS QueueClass, x.RouteId, MIN(x.RunAfter) FROM (
  SELECT w.Id, w.RunAfter, w.LaneKey, w.RouteId
  FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_claim)
  WHERE w.State = %s AND w.QueueClass = %s AND w.RunAfter <= UTC_TIMESTAMP(6)
  ORDER BY w.State, w.QueueClass, w.RunAfter, w.Id LIMIT 50) x
WHERE x.LaneKey IS NULL OR (
  (SELECT l.Id FROM `_System_ConnectorLaneHold` l
   WHERE l.LaneKey = x.LaneKey AND (l.ReleaseAt IS NULL OR l.ReleaseAt > UTC_TIMESTAMP(6))) IS NULL
  AND COALESCE((SELECT h.Id FROM `_System_ConnectorWorkItem` h WHERE h.LaneHolderKey = x.LaneKey), x.Id) = x.Id)
GROUP BY x.RouteId)

-- name: read_movement
-- When each stage last did something: the newest event and the newest receipt that was routed; the newest end of each kind, and the newest
-- failed attempt. One row of an index each (primary keys, ix_receipt_state, ix_failure_created, ix_work_terminal).
(SELECT 'route' AS Stage, CreatedDate AS At FROM `_System_ConnectorEvent` ORDER BY Id DESC LIMIT 1)
UNION ALL (SELECT 'route', RoutedAt FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_state)
  WHERE State = 'routed' ORDER BY State DESC, ReceivedAt DESC, Id DESC LIMIT 1)
UNION ALL (SELECT 'execute', CreatedDate FROM `_System_ConnectorWorkFailure` FORCE INDEX (ix_failure_created)
  ORDER BY CreatedDate DESC LIMIT 1)
UNION ALL (SELECT 'execute', TerminalAt FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = 'processed' ORDER BY State DESC, TerminalAt DESC, Id DESC LIMIT 1)
UNION ALL (SELECT 'execute', TerminalAt FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = 'skipped' ORDER BY State DESC, TerminalAt DESC, Id DESC LIMIT 1)
UNION ALL (SELECT 'execute', TerminalAt FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = 'dead' ORDER BY State DESC, TerminalAt DESC, Id DESC LIMIT 1)
