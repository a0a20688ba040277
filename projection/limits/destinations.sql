-- Statements of the breaker: one row for each destination that was ever in trouble. Locked before rate limits and work items, by ascending
-- primary key.

-- name: read_destination_ids
-- Rows of destinations. By the unique NameKey.
SELECT Id, NameKey FROM `_System_ConnectorDestination` WHERE NameKey IN %(keys)s

-- name: insert_destinations
-- Rows for destinations that had none; by NameKey ascending. An existing row stays as it is: another process was faster.
INSERT INTO `_System_ConnectorDestination` (NameKey, Name, State, Failures, Openings, LastWorkId, LastError)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON DUPLICATE KEY UPDATE Name = Name

-- name: lock_destinations
-- Locks destinations by ascending primary key, with the database's time.
SELECT Id, Name, UTC_TIMESTAMP(6), State, Failures, Openings, LastWorkId, ParkedAt, ParkedUntil, LastError, SucceededAt
FROM `_System_ConnectorDestination` FORCE INDEX (PRIMARY) WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE

-- name: update_destinations
-- Writes the health of locked destinations, each row its own. Rows by primary key.
UPDATE `_System_ConnectorDestination` FORCE INDEX (PRIMARY)
SET State = {State}, Failures = {Failures}, Openings = {Openings}, LastWorkId = {LastWorkId}, ParkedAt = {ParkedAt},
    ParkedUntil = {ParkedUntil}, LastError = {LastError}, SucceededAt = {SucceededAt}
WHERE Id IN %s

-- name: read_successes
-- Destinations to which an item got through while they were in trouble: (name, when last). By the unique NameKey.
SELECT Name, SucceededAt FROM `_System_ConnectorDestination` WHERE NameKey IN %(keys)s AND SucceededAt IS NOT NULL

-- name: read_last_failures
-- When an attempt of these items failed last, and could have succeeded: (item, when). By ux_failure_attempt.
SELECT WorkItemId, MAX(CreatedDate) FROM `_System_ConnectorWorkFailure`
WHERE WorkItemId IN %(ids)s AND Outcome <> 'rescued' GROUP BY WorkItemId

-- name: read_failed_last
-- WorkIds of items, by primary key.
SELECT Id, WorkId FROM `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) WHERE Id IN %(ids)s

-- name: let_through
-- One item of a locked destination is let through: nobody else tries until it has told, or the time is over. Rows by primary key.
UPDATE `_System_ConnectorDestination` FORCE INDEX (PRIMARY)
SET State = 'half_open', ParkedUntil = UTC_TIMESTAMP(6) + INTERVAL (%(seconds)s * 1000000) MICROSECOND WHERE Id IN %(ids)s

-- name: end_park
-- The pause of a parked destination is over now; whether one item is let through or all depends on its failures, as always. 0 rows: it is
-- not parked. By the unique NameKey.
UPDATE `_System_ConnectorDestination` SET ParkedUntil = UTC_TIMESTAMP(6) WHERE NameKey = %(key)s AND ParkedUntil > UTC_TIMESTAMP(6)
