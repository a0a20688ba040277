-- Statements about what is blocked: work that may not be claimed now, whatever is due, and its way out of the way of other work.

-- name: read_blocked
-- What keeps whole routes from being claimed, or did within the time `remembered`: (kind, name or id or key, until when; NULL: nobody knows,
-- the database's time, number). What is paused by an index of PausedAt, limits that are exhausted by ix_limit_slot, those all of whose places
-- are taken by ix_limit_concurrency, destinations in trouble by ix_destination_state (`failing`: not parked so far; the number of one that may be
-- tried once its pause is over is its id). 0 rows: everything is open.
SELECT 'namespace', n.Name, n.ResumeAt, UTC_TIMESTAMP(6), 0 FROM `_System_ConnectorNamespace` n FORCE INDEX (ix_namespace_paused)
WHERE n.PausedAt IS NOT NULL AND (n.ResumeAt IS NULL OR n.ResumeAt > UTC_TIMESTAMP(6) - INTERVAL %(remembered)s MICROSECOND)
UNION ALL
SELECT 'pack', CAST(p.Id AS CHAR), p.ResumeAt, UTC_TIMESTAMP(6), 0 FROM `_System_ConnectorPack` p FORCE INDEX (ix_pack_paused)
WHERE p.PausedAt IS NOT NULL AND (p.ResumeAt IS NULL OR p.ResumeAt > UTC_TIMESTAMP(6) - INTERVAL %(remembered)s MICROSECOND)
UNION ALL
SELECT 'route', CAST(r.Id AS CHAR), r.ResumeAt, UTC_TIMESTAMP(6), 0 FROM `_System_ConnectorRoute` r FORCE INDEX (ix_route_paused)
WHERE r.PausedAt IS NOT NULL AND (r.ResumeAt IS NULL OR r.ResumeAt > UTC_TIMESTAMP(6) - INTERVAL %(remembered)s MICROSECOND)
UNION ALL
SELECT 'limit', l.LimitKey, l.NextSlotAt - INTERVAL %(opens)s MICROSECOND, UTC_TIMESTAMP(6), 0
FROM `_System_ConnectorRateLimit` l FORCE INDEX (ix_limit_slot)
WHERE l.NextSlotAt > UTC_TIMESTAMP(6) - INTERVAL %(remembered)s MICROSECOND + INTERVAL %(opens)s MICROSECOND AND l.Rate > 0
UNION ALL
SELECT 'full', c.LimitKey, NULL, UTC_TIMESTAMP(6), 0 FROM `_System_ConnectorRateLimit` c FORCE INDEX (ix_limit_concurrency)
WHERE c.Concurrency IS NOT NULL AND c.Concurrency <= (
  SELECT COUNT(*) FROM `_System_ConnectorRunPlace` s WHERE s.LimitKey = c.LimitKey AND (
    SELECT w.Id FROM `_System_ConnectorWorkItem` w
    WHERE w.Id = s.WorkItemId AND w.LeaseToken = s.LeaseToken AND w.State = 'processing'
      AND w.LeaseExpiresAt > UTC_TIMESTAMP(6)) IS NOT NULL)
UNION ALL
SELECT CASE WHEN d.ParkedUntil IS NULL THEN 'failing' ELSE 'destination' END, d.Name, d.ParkedUntil, UTC_TIMESTAMP(6),
  CASE WHEN d.Failures >= %(failures)s THEN d.Id ELSE 0 END
FROM `_System_ConnectorDestination` d FORCE INDEX (ix_destination_state) WHERE d.State IN %(troubled)s

-- name: read_resumed
-- The pauses that somebody ended within the time `remembered`: (action, target, when), the oldest first. By ix_audit_at.
SELECT a.Action, a.Target, a.At FROM `_System_ConnectorAudit` a FORCE INDEX (ix_audit_at)
WHERE a.At > UTC_TIMESTAMP(6) - INTERVAL %(remembered)s MICROSECOND AND a.Action IN ('namespace.resume', 'pack.resume', 'route.resume')
ORDER BY a.At, a.Id

-- name: read_blocks
-- Since when, by whom and why those are blocked whom read_blocked named: (kind, name or id or key, name, until when, since when, by whom,
-- reason, number of starts or of places, in how many microseconds). Each by a unique key. No row: it has been opened meanwhile.
SELECT 'namespace', n.Name, n.Name, n.ResumeAt, n.PausedAt, n.PausedBy, n.PauseReason, 0, 0
FROM `_System_ConnectorNamespace` n WHERE n.Name IN %(namespaces)s AND n.PausedAt IS NOT NULL
UNION ALL
SELECT 'pack', CAST(p.Id AS CHAR), p.Name, p.ResumeAt, p.PausedAt, p.PausedBy, p.PauseReason, 0, 0
FROM `_System_ConnectorPack` p WHERE p.Id IN %(packs)s AND p.PausedAt IS NOT NULL
UNION ALL
SELECT 'route', CAST(r.Id AS CHAR), r.RouteKey, r.ResumeAt, r.PausedAt, r.PausedBy, r.PauseReason, 0, 0
FROM `_System_ConnectorRoute` r WHERE r.Id IN %(routes)s AND r.PausedAt IS NOT NULL
UNION ALL
SELECT 'limit', l.LimitKey, l.Name, l.NextSlotAt, NULL, NULL, NULL, l.Rate, l.PerMicroseconds
FROM `_System_ConnectorRateLimit` l WHERE l.LimitKey IN %(limits)s AND l.Rate > 0
UNION ALL
SELECT 'full', c.LimitKey, c.Name, NULL, NULL, NULL, NULL, c.Concurrency, 0
FROM `_System_ConnectorRateLimit` c WHERE c.LimitKey IN %(fulls)s AND c.Concurrency IS NOT NULL
UNION ALL
SELECT 'destination', d.NameKey, d.Name, d.ParkedUntil, d.ParkedAt, NULL, d.LastError, 0, 0
FROM `_System_ConnectorDestination` d WHERE d.NameKey IN %(destinations)s AND d.ParkedUntil IS NOT NULL

-- name: read_route_terms
-- What may block routes that this process has not met before. By primary key. A missing row: the route is unknown.
SELECT r.Id, r.Namespace, r.PackId, r.PackName, r.RouteKey, r.CompanionPack, r.CompanionFlow, r.Connection, r.RateLimit, r.CreatedAt
FROM `_System_ConnectorRoute` r WHERE r.Id IN %(ids)s

-- name: read_oldest_due
-- The oldest due items of a state and class, whatever keeps them waiting. One range of the forced ix_work_claim, no more rows than asked for.
SELECT c.Id, c.RouteId, c.PackId, c.Namespace FROM `_System_ConnectorWorkItem` c FORCE INDEX (ix_work_claim)
WHERE c.State = %(state)s AND c.QueueClass = %(queue_class)s AND c.RunAfter <= UTC_TIMESTAMP(6)
ORDER BY c.RunAfter, c.Id LIMIT %(limit)s

-- name: set_aside
-- Moves waiting items of blocked routes to a class of their route, out of the way of the others. Rows by primary key. Fewer rows than
-- given: claimed, ended or moved meanwhile.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET QueueClass = CONCAT(%(prefix)s, RouteId)
WHERE Id IN %(ids)s AND State = %(state)s AND QueueClass = %(queue_class)s
