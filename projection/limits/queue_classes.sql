-- name: earliest_of_class
-- A branch of read_due_classes: the first waiting item of a state among the classes of {condition}. One step into ix_work_claim.
(SELECT State, QueueClass, RunAfter, UTC_TIMESTAMP(6) FROM `_System_ConnectorWorkItem`
 WHERE State = %s AND {condition} ORDER BY QueueClass, RunAfter, Id LIMIT 1)
