-- Lanes for people: reads without locks, in proportion to what is live (ix_work_claim and ix_work_terminal by state), never to history.

-- name: read_live_lanes
-- Lanes that have live work, the one with the oldest item first: key, depth, how many are blocked, oldest item, newest item's id.
-- {among} restricts them to some keys, {having} to those where something is blocked. 0 rows: nothing waits.
SELECT w.LaneKey, COUNT(*), SUM(CASE WHEN w.State = 'blocked' THEN 1 ELSE 0 END), MIN(w.CreatedDate), MAX(w.Id)
FROM `_System_ConnectorWorkItem` w
WHERE w.State IN ('pending', 'blocked', 'processing', 'retry') AND w.LaneKey IS NOT NULL
  AND (w.ProjectionKey IS NULL OR w.ProjectionActiveKey IS NOT NULL) {among}
GROUP BY w.LaneKey {having}
ORDER BY MIN(w.CreatedDate), w.LaneKey LIMIT %(limit)s

-- name: read_lane_queue
-- The live items of one lane in order, the first few. Index: ix_work_lane.
SELECT Id FROM `_System_ConnectorWorkItem`
WHERE LaneKey = %(lane_key)s AND State IN ('pending', 'blocked', 'processing', 'retry')
  AND (ProjectionKey IS NULL OR ProjectionActiveKey IS NOT NULL)
ORDER BY LanePosition, Id LIMIT %(limit)s
