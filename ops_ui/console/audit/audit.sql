-- The audit trail as the console reads it. None locks.

-- name: read_audit_places
-- Ids and times of entries in order of time, from a position on, of one actor, action or target or of all. Reads that part of one index
-- alone, at most so many steps: ix_audit_actor, ix_audit_action, ix_audit_target or ix_audit_at, forced, because a server that believes
-- an actor to be frequent walks the times of everybody instead.
SELECT a.Id, a.At FROM `_System_ConnectorAudit` a FORCE INDEX ({index})
WHERE {holds} AND a.At >= %(since)s AND a.At <= %(until)s AND (a.At {beyond} %(at)s OR a.Id {beyond} %(id)s)
ORDER BY a.At {way}, a.Id {way} LIMIT %(limit)s
