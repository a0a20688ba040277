-- Does the database take writes?

-- name: probe_writes
-- Changes nothing, ever: no row has this id (0 rows). Locks nothing. A server that is read-only for us refuses it all the same.
UPDATE `_System_ConnectorProjectionProtocol` SET ActivatedBy = ActivatedBy WHERE Id = 0

-- name: probe_space
-- Rolled back, always. Long enough that the table needs new pages; another key each time, so that probes never wait for each other. The
-- table is Django's: of all tables the one with a long text and without a counter that each probe would move on.
INSERT INTO `django_session` (`session_key`, `session_data`, `expire_date`)
VALUES (REPLACE(UUID(), '-', ''), REPEAT('x', 262144), '2000-01-01')
