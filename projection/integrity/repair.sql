-- Reads of repair: candidates, without locks, in ranges of ids; each is checked again under its locks.

-- name: read_last_event_id
-- Where a walk over all events ends; 0 without any. Index: primary key.
SELECT COALESCE(MAX(Id), 0) FROM `_System_ConnectorEvent`

-- name: read_events_without_work
-- Routed, ordinary events of an id range that no retained ordinary work represents by ordinals; rows from before ordinals are all
-- candidates. Indexes: primary key, ix_work_coverage, ix_work_event.
SELECT e.Id, e.Namespace, e.PackId, e.PackIncarnation, e.ProjectionKey, e.EnqueueOrdinal FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(through)s AND e.RouteId IS NOT NULL AND e.ReplayOfEventId IS NULL
  AND ((e.ProjectionKey IS NOT NULL AND (e.EnqueueOrdinal = 0 OR (
          SELECT g.Id FROM `_System_ConnectorWorkItem` g FORCE INDEX (ix_work_coverage)
          WHERE g.ProjectionKey = e.ProjectionKey AND g.LaneOrdinal >= e.EnqueueOrdinal AND g.ReplayOfWorkId IS NULL LIMIT 1) IS NULL))
    OR (e.ProjectionKey IS NULL AND (
          SELECT i.Id FROM `_System_ConnectorWorkItem` i FORCE INDEX (ix_work_event)
          WHERE i.EventId = e.Id AND i.ReplayOfWorkId IS NULL LIMIT 1) IS NULL))
ORDER BY e.Id

-- name: read_known_events
-- Events by id, in the form of `read_known_deliveries`. No lock.
SELECT Id, DeliveryKey, PayloadSha256, ProjectionKey, EnqueueOrdinal, CreatedDate, DeliverySequence, NextAttemptAt, RouteId,
       ErasureId
FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s

-- name: read_lost_handoffs
-- Queued successors behind an id whose projection has no active generation. Index: ix_work_claim by state, unique ProjectionActiveKey.
SELECT s.Id, s.WorkId FROM `_System_ConnectorWorkItem` s
WHERE s.Id > %(after)s AND s.State = 'blocked' AND s.ProjectionKey IS NOT NULL AND s.ProjectionActiveKey IS NULL
  AND (SELECT a.Id FROM `_System_ConnectorWorkItem` a WHERE a.ProjectionActiveKey = s.ProjectionKey) IS NULL
ORDER BY s.Id LIMIT %(limit)s

-- name: read_stranded_lanes
-- (LaneKey, id of a blocked row) of each lane behind a key that has a blocked row which nothing will unblock in its turn: the lane has no
-- holder, and nothing due is ahead of it (as `audit` finds them). Index: ix_work_claim by state; LaneHolderKey, ix_work_lane.
SELECT b.LaneKey, MIN(b.Id) FROM `_System_ConnectorWorkItem` b
WHERE b.LaneKey > %(after)s AND b.State = 'blocked' AND (b.ProjectionKey IS NULL OR b.ProjectionActiveKey IS NOT NULL)
  AND (SELECT h.Id FROM `_System_ConnectorWorkItem` h WHERE h.LaneHolderKey = b.LaneKey) IS NULL
  AND (SELECT d.Id FROM `_System_ConnectorWorkItem` d FORCE INDEX (ix_work_lane)
       WHERE d.LaneKey = b.LaneKey AND d.State = 'pending' AND d.RunAfter <= UTC_TIMESTAMP(6)
         AND (d.LanePosition < b.LanePosition OR (d.LanePosition = b.LanePosition AND d.Id < b.Id)) LIMIT 1) IS NULL
GROUP BY b.LaneKey ORDER BY b.LaneKey LIMIT %(limit)s
