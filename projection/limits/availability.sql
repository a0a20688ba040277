-- Statements about what is closed: work that may not be claimed now, whatever is due, and its way out of the way of other work.

-- name: read_closed
-- What keeps whole routes from being claimed now: (kind, name or id or key, until when; NULL: nobody knows, number). What is paused by an
-- index of PausedAt, limits that are exhausted by ix_limit_slot, those all of whose places are taken by ix_limit_concurrency, destinations in trouble by ix_destination_state (`parked`; `probe`: its
-- pause is over, the number is its id; else `failing`). 0 rows: everything is open.
SELECT 'namespace', n.Name, n.ResumeAt, 0 FROM `_System_ConnectorNamespace` n FORCE INDEX (ix_namespace_paused)
WHERE n.PausedAt IS NOT NULL AND (n.ResumeAt IS NULL OR n.ResumeAt > UTC_TIMESTAMP(6))
UNION ALL
SELECT 'pack', CAST(p.Id AS CHAR), p.ResumeAt, 0 FROM `_System_ConnectorPack` p FORCE INDEX (ix_pack_paused)
WHERE p.PausedAt IS NOT NULL AND (p.ResumeAt IS NULL OR p.ResumeAt > UTC_TIMESTAMP(6))
UNION ALL
SELECT 'route', CAST(r.Id AS CHAR), r.ResumeAt, 0 FROM `_System_ConnectorRoute` r FORCE INDEX (ix_route_paused)
WHERE r.PausedAt IS NOT NULL AND (r.ResumeAt IS NULL OR r.ResumeAt > UTC_TIMESTAMP(6))
UNION ALL
SELECT 'limit', l.LimitKey, l.NextSlotAt, 0 FROM `_System_ConnectorRateLimit` l FORCE INDEX (ix_limit_slot)
WHERE l.NextSlotAt > UTC_TIMESTAMP(6) + INTERVAL %(opens)s MICROSECOND
UNION ALL
SELECT 'full', c.LimitKey, NULL, 0 FROM `_System_ConnectorRateLimit` c FORCE INDEX (ix_limit_concurrency)
WHERE c.Concurrency IS NOT NULL AND c.Concurrency <= (
  SELECT COUNT(*) FROM `_System_ConnectorRunPlace` s WHERE s.LimitKey = c.LimitKey AND (
    SELECT w.Id FROM `_System_ConnectorWorkItem` w
    WHERE w.Id = s.WorkItemId AND w.LeaseToken = s.LeaseToken AND w.State = 'processing'
      AND w.LeaseExpiresAt > UTC_TIMESTAMP(6)) IS NOT NULL)
UNION ALL
SELECT CASE WHEN d.ParkedUntil > UTC_TIMESTAMP(6) THEN 'parked' WHEN d.Failures >= %(failures)s THEN 'probe' ELSE 'failing' END,
  d.Name, d.ParkedUntil, d.Id
FROM `_System_ConnectorDestination` d FORCE INDEX (ix_destination_state) WHERE d.State IN %(troubled)s

-- name: read_route_terms
-- What the claim must know of routes that this process has not met before. By primary key. A missing row: the route is unknown.
SELECT r.Id, r.Namespace, r.PackId, r.CompanionPack, r.CompanionFlow, r.Connection, r.RateLimit, r.CreatedAt
FROM `_System_ConnectorRoute` r WHERE r.Id IN %(ids)s

-- name: read_oldest_due
-- The oldest due items of a state and class, whatever keeps them waiting. One range of the forced ix_work_claim, no more rows than asked for.
SELECT c.Id, c.RouteId, c.PackId, c.Namespace FROM `_System_ConnectorWorkItem` c FORCE INDEX (ix_work_claim)
WHERE c.State = %(state)s AND c.QueueClass = %(queue_class)s AND c.RunAfter <= UTC_TIMESTAMP(6)
ORDER BY c.RunAfter, c.Id LIMIT %(limit)s

-- name: set_aside
-- Moves waiting items of closed routes to a class of their route, out of the way of the others. Rows by primary key. Fewer rows than
-- given: claimed, ended or moved meanwhile.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET QueueClass = CONCAT(%(prefix)s, RouteId)
WHERE Id IN %(ids)s AND State = %(state)s AND QueueClass = %(queue_class)s
