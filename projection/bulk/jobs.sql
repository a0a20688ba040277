-- Bulk jobs (docs/protocol.md#bulk-jobs). A step is taken by compare-and-swap on the job's row, which it then holds until its
-- commit: the first lock of its transaction, before the namespace. Items of a job are written by its steps alone.

-- name: read_due_job
-- The job whose next step is due first. No lock. Index: ux_job_due, one row. 0 rows: nothing is to be done.
SELECT {job_columns} FROM `_System_ConnectorJob` WHERE NextStepAt IS NOT NULL ORDER BY NextStepAt, Id LIMIT 1

-- name: read_job
-- One job. No lock. 0 rows: unknown, or removed.
SELECT {job_columns} FROM `_System_ConnectorJob` WHERE Id = %(id)s

-- name: read_jobs
-- The newest confirmed jobs behind an id. No lock. Primary key, backwards.
SELECT {job_columns} FROM `_System_ConnectorJob` WHERE Id < %(before)s AND State <> 'preview' ORDER BY Id DESC LIMIT %(limit)s

-- name: take_job_step
-- Compare-and-swap: the step is ours, and the job's row locked until our commit. 0 rows: another process took it, an operator confirmed,
-- paused or cancelled the job, or it is not due yet. A preview is counted by whoever looks at it, never by a router.
UPDATE `_System_ConnectorJob` SET Step = Step + 1, SteppedAt = UTC_TIMESTAMP(6)
WHERE Id = %(id)s AND Step = %(step)s AND State = %(state)s
  AND (NextStepAt <= UTC_TIMESTAMP(6) OR State = 'preview' AND FixedAt IS NULL)

-- name: end_job_step
-- What the step did, under the lock of `take_job_step`. In an ended job nothing is left to be done, in a preview nothing until it is
-- confirmed.
UPDATE `_System_ConnectorJob`
SET AfterTime = %(after_time)s, AfterId = %(after_id)s, Total = %(total)s, Done = %(done)s, Refused = %(refused)s,
  Deferred = %(deferred)s, Skipped = %(skipped)s, Expected = %(expected)s, State = %(state)s,
  FixedAt = CASE WHEN %(is_fixed)s THEN COALESCE(FixedAt, UTC_TIMESTAMP(6)) ELSE NULL END,
  FinishedAt = CASE WHEN %(is_ended)s THEN UTC_TIMESTAMP(6) ELSE NULL END,
  NextStepAt = CASE WHEN %(is_ended)s OR State = 'preview' THEN NULL ELSE SteppedAt + INTERVAL %(wait)s MICROSECOND END
WHERE Id = %(id)s

-- name: postpone_job
-- Compare-and-swap: no step before a while has passed. 0 rows: it went on meanwhile, or nothing is to be done.
UPDATE `_System_ConnectorJob` SET NextStepAt = UTC_TIMESTAMP(6) + INTERVAL %(wait)s MICROSECOND
WHERE Id = %(id)s AND Step = %(step)s AND NextStepAt IS NOT NULL

-- name: confirm_job
-- Compare-and-swap by an operator; waits for a part that is being counted. 0 rows: it was confirmed before. One that is not counted to
-- its end keeps the moment that its members are asked of.
UPDATE `_System_ConnectorJob`
SET State = 'running', Actor = %(actor)s, Reason = %(reason)s, Rate = COALESCE(%(rate)s, Rate), NextStepAt = UTC_TIMESTAMP(6),
  CreatedDate = CASE WHEN FixedAt IS NULL THEN CreatedDate ELSE UTC_TIMESTAMP(6) END
WHERE Id = %(id)s AND State = 'preview'

-- name: pause_job
-- Compare-and-swap by an operator; waits for a step that is being done. 0 rows: it does not run.
UPDATE `_System_ConnectorJob` SET State = 'paused', NextStepAt = NULL WHERE Id = %(id)s AND State = 'running'

-- name: resume_job
-- Compare-and-swap by an operator. 0 rows: it is not paused.
UPDATE `_System_ConnectorJob` SET State = 'running', NextStepAt = UTC_TIMESTAMP(6) WHERE Id = %(id)s AND State = 'paused'

-- name: cancel_job
-- Compare-and-swap by an operator; its next steps mark what is open as skipped. 0 rows: it has ended, or is cancelled already.
UPDATE `_System_ConnectorJob` SET State = 'cancelled', NextStepAt = UTC_TIMESTAMP(6)
WHERE Id = %(id)s AND State IN ('preview', 'running', 'paused')

-- name: set_job_rate
-- Compare-and-swap by an operator. 0 rows: it has ended, or has that rate.
UPDATE `_System_ConnectorJob` SET Rate = %(rate)s WHERE Id = %(id)s AND State IN ('running', 'paused')

-- name: read_dead_page
-- The next dead items behind a position (TerminalAt, Id), oldest death first, that died before the job was made. No lock. Index:
-- ix_work_terminal, a range of at most the limit.
SELECT TerminalAt, Id FROM `_System_ConnectorWorkItem`
WHERE State = 'dead' AND TerminalAt >= %(after_time)s AND (TerminalAt, Id) > (%(after_time)s, %(after_id)s)
  AND TerminalAt <= %(through)s
ORDER BY TerminalAt, Id LIMIT %(limit)s

-- name: insert_job_items
-- Members of a job: what its selection took of a page of dead items, with why one would not be acted on at once. Reads without locks
-- (READ COMMITTED), rows by primary key.
INSERT INTO `_System_ConnectorJobItem` (JobId, Place, WorkItemId, WorkId, Namespace, ScopeKey, State, Code, Reason)
SELECT %s, d.LanePosition, d.Id, d.WorkId, d.Namespace,
  CASE WHEN d.ExecutionClass = 'projection' THEN d.SourceScopeKey END, 'waiting', COALESCE({Code}, ''), {Reason}
FROM `_System_ConnectorWorkItem` d FORCE INDEX (PRIMARY) WHERE d.Id IN %s

-- name: read_taken_scope
-- The member that earlier parts of a preview let go first in a scope, or one that they let wait there: then it is taken. Sent once for
-- each scope (`fetch_each`). No lock. Index: ux_job_item_scope, in which only refused ones are passed over.
(SELECT ScopeKey, WorkId FROM `_System_ConnectorJobItem` FORCE INDEX (ux_job_item_scope)
WHERE JobId = %s AND ScopeKey = %s AND State = 'waiting' AND Code IN ('', 'same_source') ORDER BY Id LIMIT 1)

-- name: read_waiting_items
-- The next items in lane order. No lock. Index: ux_job_item_state, at most the limit.
SELECT {item_columns} FROM `_System_ConnectorJobItem`
WHERE JobId = %(job_id)s AND State = 'waiting' ORDER BY Place, WorkItemId LIMIT %(limit)s

-- name: read_held_items
-- Those of the given items that have to wait: an earlier one of their scope is deferred, or a replay of the job is active in it. No lock.
-- Each look-up ends with its first row; as EXISTS, servers would rather read the whole job once. Indexes: primary key;
-- ux_job_item_scope; ix_work_scope, then the unique ReplayWorkId.
SELECT i.Id FROM `_System_ConnectorJobItem` i FORCE INDEX (PRIMARY)
WHERE i.Id IN %(ids)s AND i.ScopeKey IS NOT NULL AND (
  (SELECT d.Id FROM `_System_ConnectorJobItem` d FORCE INDEX (ux_job_item_scope)
   WHERE d.JobId = i.JobId AND d.ScopeKey = i.ScopeKey AND d.State = 'deferred' LIMIT 1) IS NOT NULL
  OR (SELECT r.Id FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_scope)
      STRAIGHT_JOIN `_System_ConnectorJobItem` r ON r.ReplayWorkId = w.WorkId
      WHERE w.SourceScopeKey = i.ScopeKey AND w.State IN ('pending', 'blocked', 'processing', 'retry') AND r.JobId = i.JobId
      LIMIT 1) IS NOT NULL)

-- name: read_released_items
-- Deferred items in whose scope no replay of the job is active any more, in lane order. No lock. Reads the job's deferred items until
-- enough are found, so it is asked seldom while there are many. Indexes: ux_job_item_state, then as in read_held_items.
SELECT {item_columns} FROM `_System_ConnectorJobItem` i FORCE INDEX (ux_job_item_state)
WHERE i.JobId = %(job_id)s AND i.State = 'deferred' AND (
  SELECT r.Id FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_scope)
  STRAIGHT_JOIN `_System_ConnectorJobItem` r ON r.ReplayWorkId = w.WorkId
  WHERE w.SourceScopeKey = i.ScopeKey AND w.State IN ('pending', 'blocked', 'processing', 'retry') AND r.JobId = i.JobId
  LIMIT 1) IS NULL
ORDER BY i.Place, i.WorkItemId LIMIT %(limit)s

-- name: end_job_items
-- Results of a step's items, under the lock of `take_job_step`. Rows by primary key.
UPDATE `_System_ConnectorJobItem` FORCE INDEX (PRIMARY)
SET State = {State}, Code = {Code}, Reason = {Reason}, ReplayWorkId = {ReplayWorkId} WHERE Id IN %s

-- name: read_open_items
-- Some items without a final result. No lock. Index: ux_job_item_state.
SELECT Id, State FROM `_System_ConnectorJobItem`
WHERE JobId = %(job_id)s AND State IN ('waiting', 'deferred') LIMIT %(limit)s

-- name: skip_job_items
-- Open items of a cancelled job, under the lock of `take_job_step`. Rows by primary key.
UPDATE `_System_ConnectorJobItem` FORCE INDEX (PRIMARY)
SET State = 'skipped', Code = 'cancelled', Reason = 'the job was cancelled' WHERE Id IN %(ids)s

-- name: read_job_items
-- Items of a job in one state, in lane order behind a place; sent once for each state (`fetch_each`). No lock. Index: ux_job_item_state,
-- at most the limit.
(SELECT {item_columns} FROM `_System_ConnectorJobItem` FORCE INDEX (ux_job_item_state)
WHERE JobId = %s AND State = %s AND Place >= %s AND (Place, WorkItemId) > (%s, %s) ORDER BY Place, WorkItemId LIMIT %s)

-- name: read_ended_jobs
-- Jobs that ended before a time, oldest first. No lock. Index: ux_job_finished.
SELECT Id FROM `_System_ConnectorJob` WHERE FinishedAt < %(before)s ORDER BY FinishedAt, Id LIMIT %(limit)s

-- name: read_old_previews
-- Previews of before a time that nobody confirmed, oldest first. No lock. Index: ux_job_finished, jobs that have not ended.
SELECT Id FROM `_System_ConnectorJob` FORCE INDEX (ux_job_finished)
WHERE FinishedAt IS NULL AND State = 'preview' AND CreatedDate < %(before)s ORDER BY Id LIMIT %(limit)s

-- name: end_preview
-- Compare-and-swap: nobody confirms it any more. 0 rows: it was confirmed, or is gone.
UPDATE `_System_ConnectorJob` SET State = 'cancelled', NextStepAt = NULL, FinishedAt = UTC_TIMESTAMP(6)
WHERE Id = %(id)s AND State = 'preview'

-- name: read_item_ids
-- Some items of a job. No lock. Index: ux_job_item.
SELECT Id FROM `_System_ConnectorJobItem` WHERE JobId = %(job_id)s LIMIT %(limit)s

-- name: delete_job_items
-- Items of an ended job. Rows by primary key.
DELETE FROM `_System_ConnectorJobItem` WHERE Id IN %(ids)s

-- name: delete_job
-- A job that has ended and whose items are gone. 0 rows: another prune was faster.
DELETE FROM `_System_ConnectorJob` WHERE Id = %(id)s AND FinishedAt IS NOT NULL
