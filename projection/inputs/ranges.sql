-- Inputs of generations (docs/protocol.md#ranges).

-- name: read_lower_bounds
-- For each generation: the greatest selected ordinal below its own among the retained ordinary generations of its key, whatever their
-- state (NULL: none), and whether the projection has rows from before ordinals. Index only: ix_work_coverage, ix_event_range.
-- (The order names ProjectionKey for MySQL, as in read_newest_ordinary.)
SELECT g.Id, g.ProjectionKey, g.LaneOrdinal,
  (SELECT p.LaneOrdinal FROM `_System_ConnectorWorkItem` p FORCE INDEX (ix_work_coverage)
   WHERE p.ProjectionKey = g.ProjectionKey AND p.LaneOrdinal < g.LaneOrdinal AND p.ReplayOfWorkId IS NULL
   ORDER BY p.ProjectionKey DESC, p.LaneOrdinal DESC LIMIT 1),
  (SELECT z.Id FROM `_System_ConnectorEvent` z FORCE INDEX (ix_event_range)
   WHERE z.ProjectionKey = g.ProjectionKey AND z.EnqueueOrdinal = 0 LIMIT 1) IS NOT NULL
FROM `_System_ConnectorWorkItem` g WHERE g.Id IN %(ids)s

-- name: read_inputs
-- Events of the given ranges in order, replay events excluded. {ranges} is an OR of `(ProjectionKey = … AND EnqueueOrdinal > … AND
-- EnqueueOrdinal <= …)`. Index: ix_event_range.
SELECT ProjectionKey, {event_columns} FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_range)
WHERE ({ranges}) AND ReplayOfEventId IS NULL ORDER BY ProjectionKey, EnqueueOrdinal, Id

-- name: read_lineage
-- The replayed item of each given WorkId, with ordinal and time of its selected event's fact. 0 rows: not retained.
SELECT WorkId, Id, ReplayOfWorkId, ProjectionKey, EventId, LaneOrdinal, EventCreatedDate FROM `_System_ConnectorWorkItem` WHERE WorkId IN %(work_ids)s

-- name: read_events
-- Events by id, replay events included. No lock. Missing rows: not retained.
SELECT {event_columns} FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s

-- name: read_mixed_keys
-- Which of the projections have rows from before ordinals. One index probe a key: ix_event_range.
SELECT DISTINCT ProjectionKey FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_range) WHERE ProjectionKey IN %(keys)s AND EnqueueOrdinal = 0

-- name: read_selections
-- Selections of all retained ordinary generations of the projections, whatever their state. No lock.
SELECT ProjectionKey, Id, EventId, LaneOrdinal, EventCreatedDate, DeliverySequence
FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_coverage)
WHERE ProjectionKey IN %(keys)s AND ReplayOfWorkId IS NULL

-- name: read_event_places
-- Places of all retained events of the projections, replay events excluded. No lock.
SELECT ProjectionKey, Id, EnqueueOrdinal, CreatedDate, DeliverySequence FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_range)
WHERE ProjectionKey IN %(keys)s AND ReplayOfEventId IS NULL
