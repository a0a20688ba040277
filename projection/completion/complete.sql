-- Statements of completion (docs/protocol.md#complete): lock the work items in one statement, read siblings and successors in later
-- ones, so that what committed while the lock was awaited is seen. No Event row is locked.

-- name: lock_leases
-- Locks, by ascending primary key, the items that are still executed under one of the tokens. Fewer rows than ids: lost leases.
SELECT Id, LeaseToken FROM `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
WHERE Id IN %(ids)s AND State = 'processing' AND LeaseToken IN %(tokens)s ORDER BY Id FOR UPDATE

-- name: complete_claimed_work_items
-- Ends locked items whose token still holds. The guard is repeated though the rows are locked. Fewer rows than given: lost leases.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET State = %(state)s, TerminalAt = UTC_TIMESTAMP(6), ProjectionActiveKey = NULL, LaneHolderKey = NULL, LeaseOwner = NULL,
    LeaseToken = NULL, LeaseExpiresAt = NULL
WHERE Id IN %(ids)s AND State = 'processing' AND LeaseToken IN %(tokens)s

-- name: insert_failures
-- One row for each failed attempt. (Only placeholders: the driver rewrites nothing else to one multi-row text.)
INSERT INTO `_System_ConnectorWorkFailure`
  (WorkItemId, WorkId, Attempt, Outcome, Error, ErrorFingerprint, DelayMs, LeaseOwner, CreatedDate, Frames)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: read_newest_failures
-- The newest failure of each of these items: (item, id, outcome). By ux_failure_attempt and primary key; their items are locked.
SELECT f.WorkItemId, f.Id, f.Outcome FROM `_System_ConnectorWorkFailure` f WHERE f.Id IN (
  SELECT MAX(n.Id) FROM `_System_ConnectorWorkFailure` n WHERE n.WorkItemId IN %(ids)s GROUP BY n.WorkItemId)

-- name: count_deferred_again
-- Rows of deferred tries that stand for one more now, each with its newest error, delay, worker and time. Rows by primary key.
UPDATE `_System_ConnectorWorkFailure` FORCE INDEX (PRIMARY)
SET Times = Times + 1, Error = {Error}, ErrorFingerprint = {ErrorFingerprint}, DelayMs = {DelayMs}, LeaseOwner = {LeaseOwner},
    CreatedDate = {CreatedDate}
WHERE Id IN %s

-- name: retry_claimed_work_items
-- Returns locked items to `retry`: same generation, lane still held. {DelayMs} and {CountBack} give each row its own value. Rows by
-- primary key. Fewer rows than given: lost leases.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET State = 'retry', RunAfter = UTC_TIMESTAMP(6) + INTERVAL (({DelayMs}) * 1000) MICROSECOND, Attempts = Attempts - ({CountBack}),
    LeaseOwner = NULL, LeaseToken = NULL, LeaseExpiresAt = NULL
WHERE Id IN %s AND State = 'processing'

-- name: clear_suspicions
-- Locked items that ended an attempt by themselves: they run among others again. Rows by primary key.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET WorkersLost = 0, QueueClass = REPLACE(QueueClass, '!', '')
WHERE Id IN %(ids)s AND WorkersLost = 1

-- name: note_errors
-- Writes the last error of locked items whose attempt failed, each row its own. Rows by primary key.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET LastError = {Error}, ErrorFingerprint = {ErrorFingerprint} WHERE Id IN %s

-- name: read_successors
-- Queued successors of K keys, at most K + 1 (more means a key is ambiguous). No lock. Index: ix_work_current.
SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_current)
WHERE ProjectionKey IN %(keys)s AND State = 'blocked' AND ProjectionActiveKey IS NULL ORDER BY Id LIMIT %(limit)s
