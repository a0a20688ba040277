-- Statements of the claim (protocol 4). No row lock is held between pre-selection and the compare-and-swap.
-- Every UPDATE by ids forces the primary key, here and in the other rooms: through an index on State it would lock, and wait for, rows of
-- other lanes.

-- name: read_due_classes
-- Earliest RunAfter of each (state, queue class) with claimable states; loose scan of ix_work_claim. No row: nothing waits.
SELECT State, QueueClass, MIN(RunAfter), UTC_TIMESTAMP(6) FROM `_System_ConnectorWorkItem`
WHERE State IN ('pending', 'retry') GROUP BY State, QueueClass

-- name: preselect_work_items
-- Candidates of one state and class, oldest first: due, not paused, lane neither held nor holding, first due item of its lane, flow
-- known here. Plain read; the swap decides. Index: ix_work_claim. Who owns the event is asked for the first claim alone.
SELECT c.Id, c.EventId, c.LaneKey, CASE WHEN c.ClaimedAt IS NULL THEN e.ExecutorOwner ELSE 'work_item' END
FROM `_System_ConnectorWorkItem` c JOIN `_System_ConnectorEvent` e ON e.Id = c.EventId
WHERE c.State = %(state)s AND c.QueueClass = %(queue_class)s AND c.RunAfter <= UTC_TIMESTAMP(6)
  AND (c.CompanionPack, c.CompanionFlow) IN %(flows)s
  AND (c.ProjectionKey IS NULL OR (c.ProjectionActiveKey IS NOT NULL AND %(activated)s = 1))
  AND (c.LaneKey IS NULL OR (
    c.LaneKey NOT IN %(lost_lanes)s
    AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorLaneHold` x WHERE x.LaneKey = c.LaneKey)
    AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorWorkItem` h WHERE h.LaneHolderKey = c.LaneKey AND h.Id <> c.Id)
    AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorWorkItem` f
                    WHERE f.LaneKey = c.LaneKey AND f.State = 'pending' AND f.RunAfter <= UTC_TIMESTAMP(6) AND c.State = 'pending'
                      AND (f.LanePosition < c.LanePosition OR (f.LanePosition = c.LanePosition AND f.Id < c.Id)))))
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorNamespace` n WHERE n.Name = c.Namespace AND n.PausedAt IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorPack` p WHERE p.Id = c.PackId AND p.PausedAt IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorRoute` r WHERE r.Id = c.RouteId AND r.PausedAt IS NOT NULL)
ORDER BY c.RunAfter, c.Id LIMIT %(limit)s

-- name: claim_work_items
-- Compare-and-swap: takes exactly the rows that still are as they were read ({EventId} and {Retrying} give each row its own), unless an
-- operator held their lane meanwhile. Rows by primary key. Fewer rows than asked: others were faster. 1062 on LaneHolderKey: a lane got
-- a holder meanwhile, nothing was taken.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET State = 'processing', LeaseOwner = %s, LeaseToken = %s, Attempts = Attempts + 1, ClaimedAt = UTC_TIMESTAMP(6),
    FirstClaimedAt = COALESCE(FirstClaimedAt, UTC_TIMESTAMP(6)), LeaseExpiresAt = UTC_TIMESTAMP(6) + INTERVAL %s SECOND,
    LaneHolderKey = LaneKey
WHERE Id IN %s AND EventId = {EventId} AND (State = 'retry') = ({Retrying}) AND State IN ('pending', 'retry')
  AND RunAfter <= UTC_TIMESTAMP(6)
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorLaneHold` x WHERE x.LaneKey = `_System_ConnectorWorkItem`.LaneKey)

-- name: read_claimed
-- What the token took, with the selected event. 0 rows: nothing.
SELECT {w_columns}, {e_columns}, e.RouteSnapshot
FROM `_System_ConnectorWorkItem` w JOIN `_System_ConnectorEvent` e ON e.Id = w.EventId
WHERE w.Id IN %(ids)s AND w.LeaseToken = %(token)s AND w.State = 'processing'

-- name: fence_events
-- Before activation: locks the selected, still event-owned facts (before any work item) and moves them to the fence that an old
-- binary sees. Rows with a fresh legacy lease stay with the old binary and are not claimed.
UPDATE `_System_ConnectorEvent` SET ExecutorOwner = 'work_item', Status = 'skipped', LeaseToken = NULL, LeaseExpiresAt = NULL
WHERE Id IN %(event_ids)s AND ExecutorOwner = 'event' AND (LeaseToken IS NULL OR LeaseExpiresAt <= UTC_TIMESTAMP(6))

-- name: read_event_owners
-- Who owns the facts after the fence, in the same transaction. `event`: a fresh legacy lease stays with the old binary.
SELECT Id, ExecutorOwner FROM `_System_ConnectorEvent` WHERE Id IN %(event_ids)s

-- name: extend_leases
-- Heartbeat, from its own connection. Fewer rows than given: those leases are lost (or their items have just ended).
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET LeaseExpiresAt = UTC_TIMESTAMP(6) + INTERVAL %(lease_seconds)s SECOND
WHERE Id IN %(ids)s AND LeaseToken = %(token)s AND State = 'processing'
