-- Does the database take writes?

-- name: probe_writes
-- Changes nothing, ever: no row has this id (0 rows). Locks nothing. A server that is read-only for us refuses it all the same.
UPDATE `_System_ConnectorProjectionProtocol` SET ActivatedBy = ActivatedBy WHERE Id = 0
