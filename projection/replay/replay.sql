-- name: read_work_packs
-- Namespace and pack of work items with the pack's incarnation, whatever its state: a replay without target runs under the same one.
SELECT w.WorkId, w.Namespace, p.Id, p.Incarnation
FROM `_System_ConnectorWorkItem` w JOIN `_System_ConnectorPack` p ON p.Id = w.PackId WHERE w.WorkId IN %(work_ids)s

-- name: read_origins
-- What selected events prove of their items: (id, route snapshot, ProjectionKey, source lane). No lock; facts never change.
SELECT Id, RouteSnapshot, ProjectionKey, SourceLane FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s

-- name: read_newest_successes
-- In the lane and source scope of each given item: the last LanePosition of an ordinary item that has succeeded (NULL: none). No lock.
-- Index: ix_work_lane, from its end; replays and other sources of the lane are passed over.
SELECT d.LaneKey, d.SourceScopeKey,
  (SELECT w.LanePosition FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_lane)
   WHERE w.LaneKey = d.LaneKey AND w.State = 'processed' AND w.SourceScopeKey = d.SourceScopeKey AND w.ReplayOfWorkId IS NULL
   ORDER BY w.LaneKey DESC, w.State DESC, w.LanePosition DESC LIMIT 1)
FROM `_System_ConnectorWorkItem` d WHERE d.Id IN %(ids)s

-- name: read_replayed_successes
-- Dead items of the scopes whose replay has succeeded. No lock. Index: ix_work_scope, then the unique ReplayOfWorkId.
SELECT d.Id FROM `_System_ConnectorWorkItem` d FORCE INDEX (ix_work_scope)
STRAIGHT_JOIN `_System_ConnectorWorkItem` r FORCE INDEX (ReplayOfWorkId) ON r.ReplayOfWorkId = d.WorkId
WHERE d.SourceScopeKey IN %(scopes)s AND d.State IN ('dead', 'cancelled') AND r.State = 'processed'

-- name: read_parents
-- What each given item replays, if anything, and its place in its lane: (WorkId, ReplayOfWorkId, LanePosition). No lock.
SELECT WorkId, ReplayOfWorkId, LanePosition FROM `_System_ConnectorWorkItem` WHERE WorkId IN %(work_ids)s
