-- name: earliest_of_class
-- A branch of read_due_classes: the first waiting item of a state among the classes of {condition}. One step into ix_work_claim.
(SELECT State, QueueClass, RunAfter, UTC_TIMESTAMP(6) FROM `_System_ConnectorWorkItem`
 WHERE State = %s AND {condition} ORDER BY QueueClass, RunAfter, Id LIMIT 1)

-- name: read_due_classes
-- Earliest RunAfter of each (state, queue class) that can be claimed. {branches} asks for each class that is known, and for the first
-- of the classes between them, so that a new one is noticed: one step into ix_work_claim each, whatever waits there and whatever the
-- optimizer believes of it (GROUP BY reads the whole backlog where statistics are old). No row: nothing waits.
{branches}
