-- Lanes for people: reads without locks, of what has not ended, never of history.

-- name: read_front_item
-- The first item of a lane in one state. One step into ix_work_lane.
(SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_lane)
 WHERE LaneKey = %s AND State = %s ORDER BY LaneKey, State, LanePosition, Id LIMIT 1)

-- name: read_waiting
-- What waits or runs in lanes, queued successors aside: key, how much, how much of it is blocked, since when the oldest is there. Index:
-- ix_work_lane. No row: nothing does.
SELECT w.LaneKey, COUNT(*), SUM(CASE WHEN w.State = 'blocked' THEN 1 ELSE 0 END), MIN(w.CreatedDate)
FROM `_System_ConnectorWorkItem` w
WHERE w.LaneKey IN %(keys)s AND w.State IN ('pending', 'blocked', 'processing', 'retry')
  AND (w.ProjectionKey IS NULL OR w.ProjectionActiveKey IS NOT NULL)
GROUP BY w.LaneKey
