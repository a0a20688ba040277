-- What the installation does by itself once in a while. Under the slot of its name, which one process of the installation holds.

-- name: read_upkeep
-- Whether it is due: a period after its last end, or at once when it is not through yet. 0 rows: it was never done. No lock.
SELECT FinishedAt IS NULL, FinishedAt IS NULL OR FinishedAt <= UTC_TIMESTAMP(6) - INTERVAL %(period)s SECOND, Counts
FROM `_System_ConnectorUpkeep` WHERE Name = %(name)s

-- name: begin_upkeep
-- It begins again.
INSERT INTO `_System_ConnectorUpkeep` (Name, StartedAt, FinishedAt, Counts, LastError)
VALUES (%(name)s, UTC_TIMESTAMP(6), NULL, '{}', NULL)
ON DUPLICATE KEY UPDATE StartedAt = UTC_TIMESTAMP(6), FinishedAt = NULL, Counts = '{}', LastError = NULL

-- name: note_upkeep
-- How far it came; with its end where it is through, with the error where it failed.
UPDATE `_System_ConnectorUpkeep`
SET Counts = %(counts)s, LastError = %(error)s, FinishedAt = CASE WHEN %(finished)s THEN UTC_TIMESTAMP(6) ELSE NULL END
WHERE Name = %(name)s
