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
-- What nobody may take does not count: items of a held lane, and of one that another item has. (Closed routes are the reader's business.)
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

-- name: read_openings
-- What keeps, or kept, the work of routes from being taken: (kind, name or id or key, until when; NULL: nobody knows). A moment that has passed
-- says since when it is open. Pauses, those that somebody ended lately (by ix_audit_at), limits, destinations in trouble: as many rows as are
-- configured. 0 rows: everything is open, and has long been.
SELECT 'namespace', n.Name, n.ResumeAt FROM `_System_ConnectorNamespace` n FORCE INDEX (ix_namespace_paused) WHERE n.PausedAt IS NOT NULL
UNION ALL
SELECT 'pack', CAST(p.Id AS CHAR), p.ResumeAt FROM `_System_ConnectorPack` p FORCE INDEX (ix_pack_paused) WHERE p.PausedAt IS NOT NULL
UNION ALL
SELECT 'route', CAST(r.Id AS CHAR), r.ResumeAt FROM `_System_ConnectorRoute` r FORCE INDEX (ix_route_paused) WHERE r.PausedAt IS NOT NULL
UNION ALL
SELECT a.Action, a.Target, a.At FROM `_System_ConnectorAudit` a FORCE INDEX (ix_audit_at)
WHERE a.At > UTC_TIMESTAMP(6) - INTERVAL %(seconds)s SECOND AND a.Action IN ('namespace.resume', 'pack.resume', 'route.resume')
UNION ALL
SELECT 'limit', l.LimitKey, l.NextSlotAt - INTERVAL %(opens)s MICROSECOND FROM `_System_ConnectorRateLimit` l WHERE l.Rate > 0
UNION ALL
SELECT 'full', c.LimitKey, NULL FROM `_System_ConnectorRateLimit` c FORCE INDEX (ix_limit_concurrency)
WHERE c.Concurrency IS NOT NULL AND c.Concurrency <= (
  SELECT COUNT(*) FROM `_System_ConnectorRunPlace` s WHERE s.LimitKey = c.LimitKey AND (
    SELECT w.Id FROM `_System_ConnectorWorkItem` w
    WHERE w.Id = s.WorkItemId AND w.LeaseToken = s.LeaseToken AND w.State = 'processing'
      AND w.LeaseExpiresAt > UTC_TIMESTAMP(6)) IS NOT NULL)
UNION ALL
SELECT 'destination', d.Name, d.ParkedUntil FROM `_System_ConnectorDestination` d FORCE INDEX (ix_destination_state)
WHERE d.State IN %(troubled)s AND d.ParkedUntil IS NOT NULL

-- name: read_routes_of_work
-- What may close routes that this process has not met before. By primary key. A missing row: the route is unknown.
SELECT r.Id, r.Namespace, r.PackId, r.PackName, r.RouteKey, r.CompanionPack, r.CompanionFlow, r.Connection, r.RateLimit
FROM `_System_ConnectorRoute` r WHERE r.Id IN %(ids)s

-- name: read_movement
-- When each room last did something: the newest event and the newest receipt that was routed; the newest end of each kind, and the newest
-- failed attempt. One row of an index each (primary keys, ix_receipt_state, ix_work_terminal).
(SELECT 'route' AS Room, CreatedDate AS At FROM `_System_ConnectorEvent` ORDER BY Id DESC LIMIT 1)
UNION ALL (SELECT 'route', RoutedAt FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_state)
  WHERE State = 'routed' ORDER BY State DESC, ReceivedAt DESC, Id DESC LIMIT 1)
UNION ALL (SELECT 'execute', CreatedDate FROM `_System_ConnectorWorkFailure` ORDER BY Id DESC LIMIT 1)
UNION ALL (SELECT 'execute', TerminalAt FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = 'processed' ORDER BY State DESC, TerminalAt DESC, Id DESC LIMIT 1)
UNION ALL (SELECT 'execute', TerminalAt FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = 'skipped' ORDER BY State DESC, TerminalAt DESC, Id DESC LIMIT 1)
UNION ALL (SELECT 'execute', TerminalAt FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = 'dead' ORDER BY State DESC, TerminalAt DESC, Id DESC LIMIT 1)
