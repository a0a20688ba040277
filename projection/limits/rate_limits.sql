-- Statements of limits: one row each, with the time of its next free start, and its places. The row is locked before work items, by
-- ascending primary key; who has it locked may take places.

-- name: declare_rate_limits
-- A row for each limit that routes name; the rate of the newest route version holds (DeclaredAt is compared before it is set). Rows by
-- LimitKey ascending. Only placeholders in the list: the driver rewrites nothing else to one multi-row text.
INSERT INTO `_System_ConnectorRateLimit` (LimitKey, Namespace, Name, Rate, PerMicroseconds, Concurrency, DeclaredAt, NextSlotAt)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON DUPLICATE KEY UPDATE
  Concurrency = CASE WHEN VALUES(DeclaredAt) > DeclaredAt THEN VALUES(Concurrency) ELSE Concurrency END,
  Rate = CASE WHEN VALUES(DeclaredAt) > DeclaredAt THEN VALUES(Rate) ELSE Rate END,
  PerMicroseconds = CASE WHEN VALUES(DeclaredAt) > DeclaredAt THEN VALUES(PerMicroseconds) ELSE PerMicroseconds END,
  DeclaredAt = GREATEST(DeclaredAt, VALUES(DeclaredAt))

-- name: read_rate_limit_ids
-- Rows of declared limits. By the unique LimitKey.
SELECT Id, LimitKey FROM `_System_ConnectorRateLimit` WHERE LimitKey IN %(keys)s

-- name: lock_rate_limits
-- Locks limits by ascending primary key, before any work item. The clock is that of the statement's beginning. Fewer rows than ids: gone.
SELECT Id, Rate, PerMicroseconds, Concurrency, NextSlotAt, UTC_TIMESTAMP(6) FROM `_System_ConnectorRateLimit` FORCE INDEX (PRIMARY)
WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE

-- name: take_slots
-- Moves locked limits on to their next free slot. Rows by primary key.
UPDATE `_System_ConnectorRateLimit` FORCE INDEX (PRIMARY) SET NextSlotAt = {NextSlotAt} WHERE Id IN %s

-- name: make_run_places
-- Places of limits that had fewer. Rows by (LimitKey, Number) ascending; one that is there stays as it is.
INSERT INTO `_System_ConnectorRunPlace` (LimitKey, Number) VALUES (%s, %s) ON DUPLICATE KEY UPDATE Number = Number

-- name: read_run_places
-- The places of locked limits, and for whom each is taken (NULL: it is free, nothing runs under the lease that took it). A plain read: who
-- took a place before us has committed. Index: ux_place_number, then a work item by primary key each.
SELECT s.LimitKey, s.Id, (
  SELECT w.LeaseOwner FROM `_System_ConnectorWorkItem` w
  WHERE w.Id = s.WorkItemId AND w.LeaseToken = s.LeaseToken AND w.State = 'processing' AND w.LeaseExpiresAt > UTC_TIMESTAMP(6))
FROM `_System_ConnectorRunPlace` s WHERE s.LimitKey IN %(keys)s ORDER BY s.LimitKey, s.Number

-- name: take_run_places
-- Puts items, each its own, into free places of locked limits. Rows by primary key.
UPDATE `_System_ConnectorRunPlace` FORCE INDEX (PRIMARY) SET WorkItemId = {WorkItemId}, LeaseToken = %s WHERE Id IN %s
