-- Reads that explain why a work item is not running. Plain reads of single index rows; a fixed number of them for any item.

-- name: read_why_scope
-- The database's clock, and what stops the item from outside: pauses (namespace, pack, route) and the hold of its lane. Always one row
-- for a retained item; NULL columns: not paused, not held.
SELECT UTC_TIMESTAMP(6), h.HeldBy, h.HeldAt, h.Reason, h.ReleaseAt, n.PausedAt, n.PausedBy, n.PauseReason, n.ResumeAt,
  p.Name, p.PausedAt, p.PausedBy, p.PauseReason, p.ResumeAt, r.RouteKey, r.PausedAt, r.PausedBy, r.PauseReason, r.ResumeAt
FROM `_System_ConnectorWorkItem` w
LEFT JOIN `_System_ConnectorNamespace` n ON n.Name = w.Namespace
LEFT JOIN `_System_ConnectorPack` p ON p.Id = w.PackId
LEFT JOIN `_System_ConnectorRoute` r ON r.Id = w.RouteId
LEFT JOIN `_System_ConnectorLaneHold` h ON h.LaneKey = w.LaneKey AND (h.ReleaseAt IS NULL OR h.ReleaseAt > UTC_TIMESTAMP(6))
WHERE w.Id = %(id)s

-- name: read_why_gates
-- The trouble of the item's destination, and its rate limit when that is used up for now; each by a unique key. No row: nothing keeps it.
SELECT 'destination', d.Name, d.ParkedUntil, d.ParkedAt, d.LastError, 0, 0
FROM `_System_ConnectorDestination` d WHERE d.NameKey = %(destination_key)s AND d.ParkedUntil > UTC_TIMESTAMP(6)
UNION ALL
SELECT 'limit', l.Name, l.NextSlotAt, NULL, NULL, l.Rate, l.PerMicroseconds
FROM `_System_ConnectorRateLimit` l WHERE l.LimitKey = %(limit_key)s AND l.NextSlotAt > UTC_TIMESTAMP(6)

-- name: read_why_neighbours
-- The items that an item may wait for: the active generation of its projection, the holder of its lane, the first due pending item ahead
-- of it. Indexes: ProjectionActiveKey, LaneHolderKey, ix_work_lane. No row for a role: nothing to wait for.
SELECT 'active', a.WorkId, a.State, a.RunAfter, a.LeaseExpiresAt
FROM `_System_ConnectorWorkItem` a WHERE a.ProjectionActiveKey = %(projection_key)s AND a.Id <> %(id)s
UNION ALL
SELECT 'holder', h.WorkId, h.State, h.RunAfter, h.LeaseExpiresAt
FROM `_System_ConnectorWorkItem` h WHERE h.LaneHolderKey = %(lane_key)s AND h.Id <> %(id)s
UNION ALL
(SELECT 'ahead', d.WorkId, d.State, d.RunAfter, d.LeaseExpiresAt
 FROM `_System_ConnectorWorkItem` d
 WHERE d.LaneKey = %(lane_key)s AND d.State = 'pending' AND d.RunAfter <= UTC_TIMESTAMP(6)
   AND (d.LanePosition < %(lane_position)s OR (d.LanePosition = %(lane_position)s AND d.Id < %(id)s))
 ORDER BY d.LanePosition, d.Id LIMIT 1)

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
