-- Statements of the admitted transaction (docs/protocol.md#admitted-transaction). The namespace row is its lock: one admission at a
-- time per namespace.

-- name: lock_namespace
-- Locks the namespace row, first of all locks. 0 rows: the namespace does not exist.
SELECT NextEnqueueOrdinal FROM `_System_ConnectorNamespace` WHERE Name = %(namespace)s FOR UPDATE

-- name: lock_packs
-- Locks pack rows by ascending id and reads the clock after every earlier lock was granted. Missing rows: the pack is gone.
SELECT Id, Incarnation, State, UTC_TIMESTAMP(6) FROM `_System_ConnectorPack` WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE

-- name: set_next_ordinal
-- Under the namespace lock. 0 rows cannot be.
UPDATE `_System_ConnectorNamespace` SET NextEnqueueOrdinal = %(next)s WHERE Name = %(namespace)s

-- name: read_known_deliveries
-- Events that hold one of the keys; no lock (the namespace lock keeps writers out). Index: unique DeliveryKey.
SELECT Id, DeliveryKey, PayloadSha256, ProjectionKey, EnqueueOrdinal, CreatedDate, DeliverySequence, NextAttemptAt, RouteId,
       ErasureId
FROM `_System_ConnectorEvent` WHERE DeliveryKey IN %(keys)s

-- name: insert_events
-- Multi-row insert of immutable facts. 1062 on DeliveryKey cannot be under the namespace lock.
INSERT INTO `_System_ConnectorEvent`
  (Namespace, PackId, PackIncarnation, ReceiptId, ReceiptItem, RouteId, RouteVersion, RouteSnapshot, EventKind, ProviderKind,
   Account, SourceType, SourceId, SourceKey, SourceLane, LaneCuts, TargetMutationLane, DeliveryId, DeliveryKey, DeliverySequence, EnqueueOrdinal,
   RoutedFromEventId, ProviderTimestamp, Payload, PayloadSha256, ProjectionKey, ReplayOfEventId, ExecutorOwner, Status, Attempts,
   NextAttemptAt, CreatedDate)
VALUES
  (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
   %s, %s)

-- name: read_event_ids
-- Ids of the facts of a range of ordinals (an AUTO_INCREMENT is no order, so they are read back). Index: ix_event_ordinal.
SELECT EnqueueOrdinal, Id FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_ordinal)
WHERE Namespace = %(namespace)s AND EnqueueOrdinal BETWEEN %(first)s AND %(last)s

-- name: read_current_generations
-- Ids of the nonterminal generations of K keys, in one snapshot, without locks: at most one active each (unique key) and at most
-- K + 1 queued ones, so that an ambiguous key is noticed without reading all of its rows. Indexes: ProjectionActiveKey, ix_work_current.
SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (ProjectionActiveKey) WHERE ProjectionActiveKey IN %(keys)s
UNION ALL
(SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_current)
 WHERE ProjectionKey IN %(keys)s AND State = 'blocked' AND ProjectionActiveKey IS NULL ORDER BY Id LIMIT %(limit)s)

-- name: lock_work_items
-- Locks work items by ascending primary key. Missing rows: pruned meanwhile.
SELECT {work_columns} FROM `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE

-- name: read_newest_ordinary
-- For each of the given events: the newest retained ordinary generation of its projection (NULL: none). Index only: ix_work_coverage.
-- MySQL reads that index backwards, instead of the projection's whole history, only if the order names its first column too.
SELECT e.Id,
  (SELECT g.LaneOrdinal FROM `_System_ConnectorWorkItem` g FORCE INDEX (ix_work_coverage)
   WHERE g.ProjectionKey = e.ProjectionKey AND g.ReplayOfWorkId IS NULL
   ORDER BY g.ProjectionKey DESC, g.LaneOrdinal DESC, g.EventId DESC LIMIT 1)
FROM `_System_ConnectorEvent` e WHERE e.Id IN %(event_ids)s

-- name: read_any_generation
-- For each of the given events: whether any generation of its projection is retained. One step of the forced ix_work_current.
SELECT e.Id FROM `_System_ConnectorEvent` e
WHERE e.Id IN %(event_ids)s
  AND (SELECT g.Id FROM `_System_ConnectorWorkItem` g FORCE INDEX (ix_work_current)
       WHERE g.ProjectionKey = e.ProjectionKey LIMIT 1) IS NOT NULL

-- name: read_per_event_work
-- Which of the WorkIds exist. Index: unique WorkId.
SELECT WorkId FROM `_System_ConnectorWorkItem` WHERE WorkId IN %(work_ids)s

-- name: insert_work_items
-- Multi-row insert. 1062 on ProjectionActiveKey: a promotion was faster, the unit runs again.
INSERT INTO `_System_ConnectorWorkItem`
  (WorkId, ProjectionKey, ProjectionActiveKey, ReplayOfWorkId, EventId, Namespace, PackId, RouteId, RouteVersion, CompanionPack,
   CompanionFlow, WorkType, ExecutionClass, SourceScopeKey, Account, SourceLane, LaneKey, LanePosition, LaneOrdinal, EventCreatedDate,
   DeliverySequence, QueueClass, State, RunAfter, Attempts, MaxAttempts, CreatedDate)
VALUES
  (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: insert_work_items_before_replays
-- As insert_work_items, into a schema without ReplayOfWorkId: nothing is a replay there (docs/protocol.md#activation).
INSERT INTO `_System_ConnectorWorkItem`
  (WorkId, ProjectionKey, ProjectionActiveKey, EventId, Namespace, PackId, RouteId, RouteVersion, CompanionPack,
   CompanionFlow, WorkType, ExecutionClass, SourceScopeKey, Account, SourceLane, LaneKey, LanePosition, LaneOrdinal, EventCreatedDate,
   DeliverySequence, QueueClass, State, RunAfter, Attempts, MaxAttempts, CreatedDate)
VALUES
  (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: advance_generations
-- Moves the selection of locked, unclaimed generations, each row to its own. Rows by primary key. Fewer rows than given: a row was
-- claimed without our lock, which cannot be.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET EventId = {EventId}, LaneOrdinal = {LaneOrdinal}, EventCreatedDate = {EventCreatedDate}, DeliverySequence = {DeliverySequence},
    RunAfter = {RunAfter}
WHERE Id IN %s AND ClaimedAt IS NULL

-- name: activate_generations
-- Gives the active key to locked, queued successors and makes them claimable at their RunAfter. 1062: another one holds it.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET ProjectionActiveKey = ProjectionKey, State = 'pending'
WHERE Id IN %(ids)s AND State = 'blocked' AND ProjectionActiveKey IS NULL

-- name: read_stored_facts
-- Whole rows of events by id, for repair, sweep and replay. No lock.
SELECT {fact_columns} FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s ORDER BY Id
