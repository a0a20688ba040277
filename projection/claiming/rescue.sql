-- name: lock_expired_leases
-- As lock_work_items, without waiting: a row that is locked is being ended by its worker at this moment, or its worker stands still in
-- the middle of that. Error 1205 or 3572: one of them is locked; which one is not said.
SELECT {work_columns} FROM `_System_ConnectorWorkItem` WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE NOWAIT

-- name: read_expired_leases
-- Items whose lease ran out, oldest first; no lock. Reads what is executed now, by a forced ix_work_claim: never a backlog.
SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_claim)
WHERE State = 'processing' AND LeaseExpiresAt <= UTC_TIMESTAMP(6) ORDER BY Id

-- name: read_leases
-- Every lease: its item, whose it is, its token, whether its item has started, whether it has run out. No lock. Reads what is executed now, by a
-- forced ix_work_claim: never a backlog.
SELECT Id, LeaseOwner, LeaseToken, StartedAt IS NOT NULL, LeaseExpiresAt <= UTC_TIMESTAMP(6) FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_claim)
WHERE State = 'processing'

-- name: read_live_workers
-- The processes that have said lately that they live: (host, pid, id). By ix_worker_seen.
SELECT Host, Pid, Id FROM `_System_ConnectorWorker` FORCE INDEX (ix_worker_seen)
WHERE SeenAt > UTC_TIMESTAMP(6) - INTERVAL %(microseconds)s MICROSECOND

-- name: suspect_work_items
-- Locked items over which a worker was lost, each with its number of workers: they run apart from now on. Rows by primary key.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET WorkersLost = {WorkersLost}, QueueClass = CONCAT(LEFT(REPLACE(SUBSTRING_INDEX(QueueClass, '~', 1), '!', ''), 31), '!')
WHERE Id IN %s
