-- Reads that explain why a work item is not running. Plain reads of single index rows; a fixed number of them for any item.

-- name: read_why_scope
-- The database's clock, and the hold of each item's lane. One row for each retained item; NULL columns: it is not held. By unique keys.
SELECT w.Id, UTC_TIMESTAMP(6), h.HeldBy, h.HeldAt, h.Reason, h.ReleaseAt
FROM `_System_ConnectorWorkItem` w FORCE INDEX (PRIMARY)
LEFT JOIN `_System_ConnectorLaneHold` h ON h.LaneKey = w.LaneKey AND (h.ReleaseAt IS NULL OR h.ReleaseAt > UTC_TIMESTAMP(6))
WHERE w.Id IN %(ids)s

-- name: read_why_neighbours
-- The items that each item may wait for: the active generation of its projection, the holder of its lane, the first due pending item ahead
-- of it. Indexes: ProjectionActiveKey, LaneHolderKey, ix_work_lane. No row for a role: nothing to wait for.
SELECT w.Id, 'active', a.WorkId, a.State, a.RunAfter, a.LeaseExpiresAt
FROM `_System_ConnectorWorkItem` w FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `_System_ConnectorWorkItem` a ON a.ProjectionActiveKey = w.ProjectionKey AND a.Id <> w.Id WHERE w.Id IN %(ids)s
UNION ALL
SELECT w.Id, 'holder', h.WorkId, h.State, h.RunAfter, h.LeaseExpiresAt
FROM `_System_ConnectorWorkItem` w FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `_System_ConnectorWorkItem` h ON h.LaneHolderKey = w.LaneKey AND h.Id <> w.Id WHERE w.Id IN %(ids)s
UNION ALL
SELECT w.Id, 'ahead', d.WorkId, d.State, d.RunAfter, d.LeaseExpiresAt
FROM `_System_ConnectorWorkItem` w FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `_System_ConnectorWorkItem` d FORCE INDEX (PRIMARY) ON d.Id = (
  SELECT x.Id FROM `_System_ConnectorWorkItem` x FORCE INDEX (ix_work_lane)
  WHERE x.LaneKey = w.LaneKey AND x.State = 'pending' AND x.RunAfter <= UTC_TIMESTAMP(6)
    AND (x.LanePosition < w.LanePosition OR (x.LanePosition = w.LanePosition AND x.Id < w.Id))
  ORDER BY x.LanePosition, x.Id LIMIT 1)
WHERE w.Id IN %(ids)s

-- name: read_lane_heads
-- The item whose turn it is in a lane, in this order: its holder, its first due pending item, the pending item that is due next, its
-- first blocked item. Indexes: LaneHolderKey, ix_work_lane. 0 rows: nothing live is in the lane.
SELECT 1 AS Rank_, h.Id FROM `_System_ConnectorWorkItem` h WHERE h.LaneHolderKey = %(lane_key)s
UNION ALL
(SELECT 2, d.Id FROM `_System_ConnectorWorkItem` d
 WHERE d.LaneKey = %(lane_key)s AND d.State = 'pending' AND d.RunAfter <= UTC_TIMESTAMP(6) ORDER BY d.LanePosition, d.Id LIMIT 1)
UNION ALL
(SELECT 3, s.Id FROM `_System_ConnectorWorkItem` s
 WHERE s.LaneKey = %(lane_key)s AND s.State = 'pending' ORDER BY s.RunAfter, s.LanePosition, s.Id LIMIT 1)
UNION ALL
(SELECT 4, b.Id FROM `_System_ConnectorWorkItem` b
 WHERE b.LaneKey = %(lane_key)s AND b.State = 'blocked' AND (b.ProjectionKey IS NULL OR b.ProjectionActiveKey IS NOT NULL)
 ORDER BY b.LanePosition, b.Id LIMIT 1)
ORDER BY 1 LIMIT 1
