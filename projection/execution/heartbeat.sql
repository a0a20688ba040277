-- name: register_worker
-- A process says that it lives: its row is made by the first beat (again, should it have been forgotten) and touched by later ones.
INSERT INTO `_System_ConnectorWorker` (Id, Kind, Host, Pid, CodeVersion, FlowsHash, StartedAt, SeenAt)
VALUES (%(id)s, %(kind)s, %(host)s, %(pid)s, %(code_version)s, %(flows_hash)s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE SeenAt = VALUES(SeenAt)

-- name: unregister_worker
-- A process ends in good order. 0 rows: it was forgotten already.
DELETE FROM `_System_ConnectorWorker` WHERE Id = %(id)s

-- name: forget_silent_workers
-- Processes that died without a word.
DELETE FROM `_System_ConnectorWorker` WHERE SeenAt < UTC_TIMESTAMP(6) - INTERVAL %(seconds)s SECOND

-- name: extend_leases
-- Heartbeat, from its own connection. Fewer rows than given: those leases are lost (or their items have just ended).
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET LeaseExpiresAt = UTC_TIMESTAMP(6) + INTERVAL %(lease_seconds)s SECOND
WHERE Id IN %(ids)s AND LeaseToken = %(token)s AND State = 'processing'
