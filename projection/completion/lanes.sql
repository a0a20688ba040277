-- Readiness of lanes (docs/protocol.md#lanes). Index of all of them: ix_work_lane (LaneKey, State, LanePosition, Id).

-- name: read_unblocked_rows
-- The live rows of the lanes that are not `blocked`: at most a handful a lane, whatever its depth. No lock.
SELECT Id, LaneKey, State, LanePosition, RunAfter FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_lane)
WHERE LaneKey IN %(lanes)s AND State IN ('pending', 'processing', 'retry')

-- name: read_next_blocked
-- For each given work item: the first live blocked row of its lane (NULL: none). One index row a lane. No lock.
-- The order names the index's first columns: MySQL would sort the whole lane without them.
SELECT c.Id,
  (SELECT b.Id FROM `_System_ConnectorWorkItem` b FORCE INDEX (ix_work_lane)
   WHERE b.LaneKey = c.LaneKey AND b.State = 'blocked' AND (b.ProjectionKey IS NULL OR b.ProjectionActiveKey IS NOT NULL)
   ORDER BY b.LaneKey, b.State, b.LanePosition, b.Id LIMIT 1)
FROM `_System_ConnectorWorkItem` c WHERE c.Id IN %(ids)s

-- name: unblock_work_items
-- Makes locked blocked rows claimable. Fewer rows than given: they ended meanwhile (the caller looks for the next ones).
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET State = 'pending'
WHERE Id IN %(ids)s AND State = 'blocked' AND (ProjectionKey IS NULL OR ProjectionActiveKey IS NOT NULL)

-- name: insert_hold
-- 1062 on LaneKey: the lane is held already.
INSERT INTO `_System_ConnectorLaneHold` (Namespace, LaneKey, Lane, Reason, HeldBy, HeldAt, ReleaseAt)
VALUES (%(namespace)s, %(lane_key)s, %(lane)s, %(reason)s, %(actor)s, UTC_TIMESTAMP(6), %(release_at)s)

-- name: delete_hold_that_is_over
-- Makes room for a new hold. 0 rows: the lane is not held, or still is.
DELETE FROM `_System_ConnectorLaneHold` WHERE LaneKey = %(lane_key)s AND ReleaseAt <= UTC_TIMESTAMP(6)

-- name: delete_hold
-- 0 rows: the lane was not held.
DELETE FROM `_System_ConnectorLaneHold` WHERE LaneKey = %(lane_key)s AND (ReleaseAt IS NULL OR ReleaseAt > UTC_TIMESTAMP(6))
