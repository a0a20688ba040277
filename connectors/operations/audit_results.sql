-- name: keep_result
-- A run that is over, whole: when it began and ended, and what it came to.
INSERT INTO `_System_ConnectorUpkeep` (Name, StartedAt, FinishedAt, Counts, LastError)
VALUES (%(name)s, %(started)s, UTC_TIMESTAMP(6), %(counts)s, NULL)
ON DUPLICATE KEY UPDATE StartedAt = VALUES(StartedAt), FinishedAt = VALUES(FinishedAt), Counts = VALUES(Counts), LastError = NULL
