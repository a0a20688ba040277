-- Statements of rate limits: one row each, with the time of its next free start. Locked before work items, by ascending primary key.

-- name: declare_rate_limits
-- A row for each limit that routes name; the rate of the newest route version holds (DeclaredAt is compared before it is set). Rows by
-- LimitKey ascending. Only placeholders in the list: the driver rewrites nothing else to one multi-row text.
INSERT INTO `_System_ConnectorRateLimit` (LimitKey, Namespace, Name, Rate, PerMicroseconds, DeclaredAt, NextSlotAt)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON DUPLICATE KEY UPDATE
  Rate = CASE WHEN VALUES(DeclaredAt) > DeclaredAt THEN VALUES(Rate) ELSE Rate END,
  PerMicroseconds = CASE WHEN VALUES(DeclaredAt) > DeclaredAt THEN VALUES(PerMicroseconds) ELSE PerMicroseconds END,
  DeclaredAt = GREATEST(DeclaredAt, VALUES(DeclaredAt))

-- name: read_rate_limit_ids
-- Rows of declared limits. By the unique LimitKey.
SELECT Id, LimitKey FROM `_System_ConnectorRateLimit` WHERE LimitKey IN %(keys)s

-- name: lock_rate_limits
-- Locks limits by ascending primary key, before any work item. The clock is that of the statement's beginning. Fewer rows than ids: gone.
SELECT Id, Rate, PerMicroseconds, NextSlotAt, UTC_TIMESTAMP(6) FROM `_System_ConnectorRateLimit` FORCE INDEX (PRIMARY)
WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE

-- name: take_slots
-- Moves locked limits on to their next free slot. Rows by primary key.
UPDATE `_System_ConnectorRateLimit` FORCE INDEX (PRIMARY) SET NextSlotAt = {NextSlotAt} WHERE Id IN %s
