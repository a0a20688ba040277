-- Alerts: what is raised, who looks next, and what is still to be told. Every change is a compare-and-swap, so that any number of hosts
-- may look at the same time and each transition is told once.

-- name: make_alerts
-- The rows of alerts that this code knows, and of the watch itself; those that exist stay as they are.
INSERT INTO `headrace_alert` (Name, Raised, Step, ChangedAt, ClearSince, Code, Reason) VALUES {rows}
ON DUPLICATE KEY UPDATE Name = `headrace_alert`.Name

-- name: take_turn
-- Whose turn it is to look: the row `watch` keeps when somebody last did. 0 rows: it is not time yet, or another process was faster.
UPDATE `headrace_alert` SET ChangedAt = UTC_TIMESTAMP(6), Step = Step + 1
WHERE Name = 'watch' AND ChangedAt <= UTC_TIMESTAMP(6) - INTERVAL %(period)s SECOND

-- name: read_alerts
-- Name, whether it is raised, its step, since when it is clear, and since when it is as it is. A handful of rows.
SELECT Name, Raised, Step, ClearSince, ChangedAt FROM `headrace_alert` WHERE Name <> 'watch'

-- name: raise_alert
-- By the step that was read. 0 rows: another process has raised it.
UPDATE `headrace_alert`
SET Raised = 1, Step = Step + 1, ChangedAt = UTC_TIMESTAMP(6), ClearSince = NULL, Code = %(code)s, Reason = %(reason)s
WHERE Name = %(name)s AND Step = %(step)s AND Raised = 0

-- name: mark_alert_clear
-- Its cause is gone ({moment}: UTC_TIMESTAMP(6)), or is there again (NULL). 0 rows: another process saw it first.
UPDATE `headrace_alert` SET Step = Step + 1, ClearSince = {moment} WHERE Name = %(name)s AND Step = %(step)s AND Raised = 1

-- name: recover_alert
-- As `raise_alert`.
UPDATE `headrace_alert` SET Raised = 0, Step = Step + 1, ChangedAt = UTC_TIMESTAMP(6), ClearSince = NULL
WHERE Name = %(name)s AND Step = %(step)s AND Raised = 1

-- name: count_recent_dead
-- Items that died within the last hour, at most so many. Index: ix_work_terminal alone.
SELECT COUNT(*) FROM (
  SELECT 1 FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = 'dead' AND TerminalAt >= UTC_TIMESTAMP(6) - INTERVAL 1 HOUR LIMIT %(most)s) x

-- name: count_recent_rejected
-- Deliveries of the last hour of which something was rejected or in conflict, at most so many. Index: ix_receipt_state alone.
SELECT COUNT(*) FROM (
  SELECT 1 FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_state)
  WHERE State IN ('partial', 'rejected') AND ReceivedAt >= UTC_TIMESTAMP(6) - INTERVAL 1 HOUR LIMIT %(most)s) x

-- name: insert_alert_message
-- In the transaction of its transition.
INSERT INTO `headrace_alert_message` (Channel, MessageId, Subject, Body, Attempts, NextTryAt, SentAt, LastError, CreatedAt)
VALUES (%(channel)s, %(message_id)s, %(subject)s, %(body)s, 0, UTC_TIMESTAMP(6), NULL, NULL, UTC_TIMESTAMP(6))

-- name: read_due_messages
-- What is to be sent now, oldest first. Index: ux_alert_message_due.
SELECT Id, Channel, MessageId, Subject, Body, Attempts, CreatedAt < UTC_TIMESTAMP(6) - INTERVAL %(give_up)s SECOND
FROM `headrace_alert_message` WHERE NextTryAt <= UTC_TIMESTAMP(6) ORDER BY NextTryAt, Id LIMIT 10

-- name: begin_message
-- Before a try; the next one comes after `pause` unless it is marked as sent. 0 rows: another process tries it.
UPDATE `headrace_alert_message` SET Attempts = Attempts + 1, NextTryAt = UTC_TIMESTAMP(6) + INTERVAL %(pause)s SECOND
WHERE Id = %(id)s AND Attempts = %(attempts)s AND NextTryAt <= UTC_TIMESTAMP(6)

-- name: end_message
-- Sent, or given up; in both cases it is not tried again.
UPDATE `headrace_alert_message`
SET NextTryAt = NULL, SentAt = CASE WHEN %(sent)s THEN UTC_TIMESTAMP(6) END, LastError = COALESCE(%(error)s, LastError) WHERE Id = %(id)s

-- name: note_message_error
-- Why the last try failed.
UPDATE `headrace_alert_message` SET LastError = %(error)s WHERE Id = %(id)s

-- name: prune_messages
-- Old ones, a bounded number. Index: ux_alert_message_created.
DELETE FROM `headrace_alert_message` WHERE CreatedAt < UTC_TIMESTAMP(6) - INTERVAL 30 DAY ORDER BY CreatedAt, Id LIMIT 100

-- name: add_signature_failures
-- What one process has seen since it last told: by endpoint and minute (ux_signature_failures).
INSERT INTO `headrace_signature_failures` (Endpoint, Minute, Failures)
VALUES (%(endpoint)s, UTC_TIMESTAMP(6) - INTERVAL SECOND(UTC_TIMESTAMP(6)) SECOND - INTERVAL MICROSECOND(UTC_TIMESTAMP(6)) MICROSECOND, %(count)s)
ON DUPLICATE KEY UPDATE Failures = Failures + %(count)s

-- name: read_signature_failures
-- Of the last minutes, by endpoint, most first. Index: ux_signature_failures_minute.
SELECT Endpoint, SUM(Failures) AS Total FROM `headrace_signature_failures`
WHERE Minute >= UTC_TIMESTAMP(6) - INTERVAL %(minutes)s MINUTE GROUP BY Endpoint ORDER BY Total DESC, Endpoint

-- name: prune_signature_failures
-- What is too old to matter, a bounded number. Index: ux_signature_failures_minute.
DELETE FROM `headrace_signature_failures` WHERE Minute < UTC_TIMESTAMP(6) - INTERVAL 1 DAY ORDER BY Minute, Id LIMIT 1000
