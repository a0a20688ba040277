-- Statements of the claim (docs/protocol.md#claim). No row lock is held between pre-selection and the compare-and-swap.
-- Every UPDATE by ids forces the primary key, here and in the other folders: through an index on State it would lock, and wait for, rows of
-- other lanes.

-- name: preselect_work_items
-- Candidates of one state and class, oldest first: due, nothing of it blocked, lane neither held nor holding, first due item of its lane, flow
-- known here, its event not leased by an old binary. Before activation of projections only what an old binary has ended: its lane goes on.
-- Plain read; the swap decides. Who owns the event (NULL: it is not retained; `ended`: an old binary has ended it) is asked for the first
-- claim alone.
-- Its indexes are forced, and what is asked of each row is a look-up by a unique key that no optimizer can turn into a join: with
-- statistics from before a backlog came, MariaDB and MySQL read and sorted all of it, MySQL once for each of its rows.
SELECT c.Id, c.EventId, c.LaneKey,
  CASE WHEN c.ClaimedAt IS NULL THEN (
    SELECT CASE WHEN e.ExecutorOwner = 'event' AND e.TerminalAt IS NOT NULL THEN 'ended' ELSE e.ExecutorOwner END
    FROM `_System_ConnectorEvent` e WHERE e.Id = c.EventId) ELSE 'work_item' END,
  c.RouteId
FROM `_System_ConnectorWorkItem` c FORCE INDEX (ix_work_claim)
WHERE c.State = %(state)s AND c.QueueClass = %(queue_class)s AND c.RunAfter <= UTC_TIMESTAMP(6)
  AND (c.CompanionPack, c.CompanionFlow) IN %(flows)s
  AND (c.ProjectionKey IS NULL OR (c.ProjectionActiveKey IS NOT NULL AND (%(activated)s = 1 OR (
    SELECT o.Id FROM `_System_ConnectorEvent` o
    WHERE o.Id = c.EventId AND o.ExecutorOwner = 'event' AND o.TerminalAt IS NOT NULL) IS NOT NULL)))
  AND c.RouteId NOT IN %(routes)s AND c.PackId NOT IN %(packs)s AND c.Namespace NOT IN %(namespaces)s
  AND (c.ClaimedAt IS NOT NULL OR (
    SELECT e.Id FROM `_System_ConnectorEvent` e WHERE e.Id = c.EventId AND e.ExecutorOwner = 'event' AND e.TerminalAt IS NULL
      AND e.LeaseToken IS NOT NULL AND e.LeaseExpiresAt > UTC_TIMESTAMP(6)) IS NULL)
  AND (c.LaneKey IS NULL OR (
    c.LaneKey NOT IN %(lost_lanes)s
    AND (SELECT x.Id FROM `_System_ConnectorLaneHold` x
         WHERE x.LaneKey = c.LaneKey AND (x.ReleaseAt IS NULL OR x.ReleaseAt > UTC_TIMESTAMP(6))) IS NULL
    AND COALESCE((SELECT h.Id FROM `_System_ConnectorWorkItem` h WHERE h.LaneHolderKey = c.LaneKey), c.Id) = c.Id
    AND (c.State = 'retry' OR c.Id = (
      SELECT f.Id FROM `_System_ConnectorWorkItem` f FORCE INDEX (ix_work_lane)
      WHERE f.LaneKey = c.LaneKey AND f.State = 'pending' AND f.RunAfter <= UTC_TIMESTAMP(6)
      ORDER BY f.LaneKey, f.State, f.LanePosition, f.Id LIMIT 1))))
ORDER BY c.RunAfter, c.Id LIMIT %(limit)s

-- name: claim_work_items
-- Compare-and-swap: takes exactly the rows that still are as they were read ({EventId} and {Retrying} give each row its own), unless an
-- operator held their lane meanwhile. Items of some routes count as started at once. Rows by primary key. Fewer rows than asked: others
-- were faster. 1062 on LaneHolderKey: a lane got a holder meanwhile, nothing was taken.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET State = 'processing', LeaseOwner = %s, LeaseToken = %s, Attempts = Attempts + 1, ClaimedAt = UTC_TIMESTAMP(6),
    FirstClaimedAt = COALESCE(FirstClaimedAt, UTC_TIMESTAMP(6)), LeaseExpiresAt = UTC_TIMESTAMP(6) + INTERVAL %s SECOND,
    StartedAt = CASE WHEN RouteId IN %s THEN UTC_TIMESTAMP(6) END, LaneHolderKey = LaneKey
WHERE Id IN %s AND EventId = {EventId} AND (State = 'retry') = ({Retrying}) AND State IN ('pending', 'retry')
  AND RunAfter <= UTC_TIMESTAMP(6)
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorLaneHold` x
    WHERE x.LaneKey = `_System_ConnectorWorkItem`.LaneKey AND (x.ReleaseAt IS NULL OR x.ReleaseAt > UTC_TIMESTAMP(6)))

-- name: note_start
-- An item under a lease is about to start: written before, and committed by itself, because a flow may end its process. By primary key.
-- 0 rows: the lease is lost; the end of the attempt says so.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) SET StartedAt = UTC_TIMESTAMP(6)
WHERE Id = %(id)s AND LeaseToken = %(token)s AND State = 'processing'

-- name: read_still_waiting
-- Which candidates still wait, once the limits are locked: those whom another claim took while we waited must use up no slot and no place.
-- A plain read, by primary key.
SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY) WHERE Id IN %(ids)s AND State IN ('pending', 'retry')

-- name: read_taken
-- Which items the token has just taken, in the transaction of the swap, by ascending id.
SELECT Id FROM `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
WHERE Id IN %(ids)s AND LeaseToken = %(token)s AND State = 'processing' ORDER BY Id

-- name: read_claimed
-- What the token took, with the selected event (NULL: it is not retained). 0 rows: nothing.
SELECT {w_columns}, {e_columns}, e.RouteSnapshot
FROM `_System_ConnectorWorkItem` w LEFT JOIN `_System_ConnectorEvent` e ON e.Id = w.EventId
WHERE w.Id IN %(ids)s AND w.LeaseToken = %(token)s AND w.State = 'processing'
