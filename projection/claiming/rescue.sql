-- name: lock_expired_leases
-- As lock_work_items, without waiting: a row that is locked is being ended by its worker at this moment, or its worker stands still in
-- the middle of that. Error 1205 or 3572: one of them is locked; which one is not said.
SELECT {work_columns} FROM `_System_ConnectorWorkItem` WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE NOWAIT

-- name: read_expired_leases
-- Items whose lease ran out, oldest first; no lock. Reads what is executed now, by a forced ix_work_claim: never a backlog.
SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_claim)
WHERE State = 'processing' AND LeaseExpiresAt <= UTC_TIMESTAMP(6) ORDER BY Id LIMIT %(limit)s
