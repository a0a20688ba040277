-- Statements of the audit (docs/protocol.md#invariants). Plain reads, no locks; each is one consistent snapshot, so that what a
-- transaction is just about to commit never looks like half of a change. Each returns (rows found in all, id, what …) for the rows of
-- one page of its table, the first %(limit)s of them; 0 rows: the invariant holds there.

-- name: audit_end
-- Where a walk of the table ends: later rows are the next audit's.
SELECT COALESCE(MAX(Id), 0) FROM {table}

-- name: audit_page
-- The next page of the table by primary key: how many rows, and its last id.
SELECT COUNT(*), MAX(Id) FROM (
  SELECT Id FROM {table} WHERE Id > %(after)s AND Id <= %(end)s ORDER BY Id LIMIT %(page_rows)s) page

-- name: audit_payload_hash
-- Rehashes every payload of the page inside the server; compared as bytes, whatever the collations. A tombstone has none.
SELECT COUNT(*) OVER (), e.Id, e.PayloadSha256
FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(last)s AND e.ErasureId IS NULL
  AND CAST(SHA2(e.Payload, 256) AS BINARY) <> CAST(e.PayloadSha256 AS BINARY)
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_tombstone
SELECT COUNT(*) OVER (), e.Id, e.ErasureId
FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(last)s AND e.ErasureId IS NOT NULL
  AND (e.Payload <> '' OR e.SourceId <> CONCAT('erased:', e.SourceKey)
    OR e.SourceLane NOT IN ('', e.SourceId) OR e.TargetMutationLane NOT IN ('', e.SourceId))
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_route_snapshot
SELECT COUNT(*) OVER (), e.Id,
  CASE WHEN e.RouteId IS NULL THEN 'it matched no route, but belongs to a projection'
       WHEN e.RouteVersion IS NULL THEN 'its route version is missing'
       ELSE 'its copy of the route is missing' END
FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(last)s
  AND ((e.RouteId IS NULL AND e.ProjectionKey IS NOT NULL)
    OR (e.RouteId IS NOT NULL AND (e.RouteVersion IS NULL OR e.RouteSnapshot IS NULL OR e.RouteSnapshot = '')))
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_delivery_key
-- Index: unique DeliveryKey (or whatever an older installation left of it).
SELECT COUNT(*) OVER (), e.Id, e.DeliveryKey
FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(last)s
  AND EXISTS (SELECT 1 FROM `_System_ConnectorEvent` o WHERE o.DeliveryKey = e.DeliveryKey AND o.Id < e.Id)
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_ordinal_unique
-- Index: ix_event_ordinal.
SELECT COUNT(*) OVER (), e.Id, e.EnqueueOrdinal, e.Namespace
FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(last)s AND e.EnqueueOrdinal > 0
  AND (SELECT o.Id FROM `_System_ConnectorEvent` o FORCE INDEX (ix_event_ordinal)
       WHERE o.Namespace = e.Namespace AND o.EnqueueOrdinal = e.EnqueueOrdinal AND o.Id < e.Id LIMIT 1) IS NOT NULL
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_projection_covered
-- An event is in exactly one range if an ordinary generation lies at or after it: the newest by ordinal, or one from before ordinals
-- existed that is later by ingress time. Index: ix_work_coverage, one row read from its end for each event.
SELECT COUNT(*) OVER (), e.Id, e.EnqueueOrdinal, e.ProjectionKey
FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(last)s
  AND e.ProjectionKey IS NOT NULL AND e.RouteId IS NOT NULL AND e.ReplayOfEventId IS NULL AND e.EnqueueOrdinal > 0
  AND e.EnqueueOrdinal > COALESCE((
    SELECT g.LaneOrdinal FROM `_System_ConnectorWorkItem` g FORCE INDEX (ix_work_coverage)
    WHERE g.ProjectionKey = e.ProjectionKey AND g.ReplayOfWorkId IS NULL
    ORDER BY g.ProjectionKey DESC, g.LaneOrdinal DESC LIMIT 1), 0)
  AND (SELECT l.Id FROM `_System_ConnectorWorkItem` l FORCE INDEX (ix_work_coverage)
       WHERE l.ProjectionKey = e.ProjectionKey AND l.ReplayOfWorkId IS NULL AND l.LaneOrdinal = 0
         AND (l.EventCreatedDate, l.DeliverySequence, l.EventId) >= (e.CreatedDate, e.DeliverySequence, e.Id) LIMIT 1) IS NULL
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_legacy_covered
-- As audit_projection_covered for events from before ordinals existed, which compare by ingress time. What the old binary finished
-- under Event ownership needs no generation.
SELECT COUNT(*) OVER (), e.Id, e.EnqueueOrdinal, e.ProjectionKey
FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(last)s
  AND e.ProjectionKey IS NOT NULL AND e.RouteId IS NOT NULL AND e.ReplayOfEventId IS NULL AND e.EnqueueOrdinal = 0
  AND NOT (e.ExecutorOwner = 'event' AND e.TerminalAt IS NOT NULL)
  AND (SELECT g.Id FROM `_System_ConnectorWorkItem` g FORCE INDEX (ix_work_coverage)
       WHERE g.ProjectionKey = e.ProjectionKey AND g.ReplayOfWorkId IS NULL
         AND (g.EventCreatedDate, g.DeliverySequence, g.EventId) >= (e.CreatedDate, e.DeliverySequence, e.Id) LIMIT 1) IS NULL
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_per_event_work
-- Index: ix_work_event. The old binary's own finished events (no ordinal, Event ownership) need no work item.
SELECT COUNT(*) OVER (), e.Id, COUNT(w.Id)
FROM `_System_ConnectorEvent` e
LEFT JOIN `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_event) ON w.EventId = e.Id AND w.ReplayOfWorkId IS NULL
WHERE e.Id > %(after)s AND e.Id <= %(last)s
  AND e.RouteId IS NOT NULL AND e.ProjectionKey IS NULL AND e.ReplayOfEventId IS NULL
  AND NOT (e.EnqueueOrdinal = 0 AND e.ExecutorOwner = 'event' AND e.TerminalAt IS NOT NULL)
GROUP BY e.Id HAVING COUNT(w.Id) <> 1
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_replay_event
-- Index: primary key, ix_work_event.
SELECT COUNT(*) OVER (), r.Id,
  CASE WHEN o.Id IS NULL THEN CONCAT('event ', r.ReplayOfEventId, ', which it replays, is no longer stored')
       WHEN o.PayloadSha256 <> r.PayloadSha256 THEN CONCAT('its payload differs from that of event ', o.Id, ', which it replays')
       ELSE 'it does not belong to exactly one replay' END
FROM `_System_ConnectorEvent` r LEFT JOIN `_System_ConnectorEvent` o ON o.Id = r.ReplayOfEventId
WHERE r.Id > %(after)s AND r.Id <= %(last)s AND r.ReplayOfEventId IS NOT NULL
  AND (o.Id IS NULL OR o.PayloadSha256 <> r.PayloadSha256
    OR (SELECT COUNT(*) FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_event)
        WHERE w.EventId = r.Id AND w.ReplayOfWorkId IS NOT NULL) <> 1)
ORDER BY r.Id LIMIT %(limit)s

-- name: audit_active_key
SELECT COUNT(*) OVER (), w.WorkId, w.ProjectionActiveKey, COALESCE(w.ProjectionKey, 'none')
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND w.ProjectionActiveKey IS NOT NULL AND (w.ProjectionKey IS NULL OR w.ProjectionActiveKey <> w.ProjectionKey)
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_one_active
-- Index: ix_work_current.
SELECT COUNT(*) OVER (), w.WorkId, w.ProjectionKey
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND w.State IN ('pending', 'blocked', 'processing', 'retry') AND w.ProjectionKey IS NOT NULL AND w.ProjectionActiveKey IS NOT NULL
  AND (SELECT o.Id FROM `_System_ConnectorWorkItem` o FORCE INDEX (ix_work_current)
       WHERE o.ProjectionKey = w.ProjectionKey AND o.State IN ('pending', 'blocked', 'processing', 'retry')
         AND o.ProjectionActiveKey IS NOT NULL AND o.Id < w.Id LIMIT 1) IS NOT NULL
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_one_successor
-- Index: ix_work_current.
SELECT COUNT(*) OVER (), w.WorkId, w.ProjectionKey
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND w.State IN ('pending', 'blocked', 'processing', 'retry') AND w.ProjectionKey IS NOT NULL AND w.ProjectionActiveKey IS NULL
  AND (SELECT o.Id FROM `_System_ConnectorWorkItem` o FORCE INDEX (ix_work_current)
       WHERE o.ProjectionKey = w.ProjectionKey AND o.State IN ('pending', 'blocked', 'processing', 'retry')
         AND o.ProjectionActiveKey IS NULL AND o.Id < w.Id LIMIT 1) IS NOT NULL
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_successor_alone
-- Index: ix_work_current.
SELECT COUNT(*) OVER (), w.WorkId, w.ProjectionKey
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND w.State IN ('pending', 'blocked', 'processing', 'retry') AND w.ProjectionKey IS NOT NULL AND w.ProjectionActiveKey IS NULL
  AND (SELECT a.Id FROM `_System_ConnectorWorkItem` a FORCE INDEX (ix_work_current)
       WHERE a.ProjectionKey = w.ProjectionKey AND a.State IN ('pending', 'blocked', 'processing', 'retry')
         AND a.ProjectionActiveKey IS NOT NULL LIMIT 1) IS NULL
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_successor_inactive
-- A successor selects later news than its ordinary predecessor; behind a replay an older, repaired event is legal.
SELECT COUNT(*) OVER (), w.WorkId,
  CASE WHEN w.State <> 'blocked' THEN CONCAT('it is ', w.State, ', not blocked')
       WHEN w.ClaimedAt IS NOT NULL THEN 'it was claimed'
       ELSE CONCAT('it has no newer event than the active generation ', a.WorkId) END
FROM `_System_ConnectorWorkItem` w
LEFT JOIN `_System_ConnectorWorkItem` a ON a.ProjectionActiveKey = w.ProjectionKey AND a.ReplayOfWorkId IS NULL
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND w.State IN ('pending', 'blocked', 'processing', 'retry') AND w.ProjectionKey IS NOT NULL AND w.ProjectionActiveKey IS NULL
  AND (w.State <> 'blocked' OR w.ClaimedAt IS NOT NULL OR (w.LaneOrdinal > 0 AND a.LaneOrdinal >= w.LaneOrdinal))
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_replay_lineage
-- Every replay is admitted after what it replays, so an edge that goes back in admission order is the one way to a cycle. Index: unique
-- ReplayOfWorkId (or whatever an older installation left of it).
SELECT COUNT(*) OVER (), r.WorkId,
  CASE WHEN d.Id IS NULL THEN CONCAT(r.ReplayOfWorkId, ', which it replays, is no longer stored')
       WHEN d.State NOT IN ('dead', 'cancelled') THEN CONCAT(d.WorkId, ', which it replays, is ', d.State)
       WHEN d.ExecutionClass <> r.ExecutionClass THEN CONCAT('it is ', r.ExecutionClass, ', what it replays is ', d.ExecutionClass)
       WHEN d.Namespace <> r.Namespace THEN 'it replays an item of another namespace'
       WHEN d.LaneOrdinal >= r.LaneOrdinal THEN CONCAT('it is not later than ', d.WorkId, ', which it replays: the lineage has a cycle')
       ELSE CONCAT('another item replays ', d.WorkId, ' too') END
FROM `_System_ConnectorWorkItem` r LEFT JOIN `_System_ConnectorWorkItem` d ON d.WorkId = r.ReplayOfWorkId
WHERE r.Id > %(after)s AND r.Id <= %(last)s AND r.ReplayOfWorkId IS NOT NULL
  AND (d.Id IS NULL OR d.State NOT IN ('dead', 'cancelled') OR d.ExecutionClass <> r.ExecutionClass OR d.Namespace <> r.Namespace
    OR d.LaneOrdinal >= r.LaneOrdinal
    OR (SELECT o.Id FROM `_System_ConnectorWorkItem` o WHERE o.ReplayOfWorkId = r.ReplayOfWorkId AND o.Id < r.Id LIMIT 1) IS NOT NULL)
ORDER BY r.Id LIMIT %(limit)s

-- name: audit_execution_class
SELECT COUNT(*) OVER (), w.WorkId, w.ExecutionClass, COALESCE(w.ProjectionKey, 'none')
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND NOT ((w.ExecutionClass = 'projection' AND w.ProjectionKey IS NOT NULL)
    OR (w.ExecutionClass = 'per_event' AND w.ProjectionKey IS NULL))
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_selected_event
-- The order snapshot may be of another precision than the event's own time, where an older installation widened one column. Index: primary
-- key of the event.
SELECT COUNT(*) OVER (), w.WorkId,
  CASE WHEN e.Id IS NULL THEN CONCAT('its event ', w.EventId, ' is no longer stored')
       WHEN NOT (e.ProjectionKey <=> w.ProjectionKey) THEN CONCAT('its event ', e.Id, ' belongs to another projection')
       WHEN e.Namespace <> w.Namespace THEN CONCAT('its event ', e.Id, ' belongs to another namespace')
       WHEN e.EnqueueOrdinal <> w.LaneOrdinal
         THEN CONCAT('its sequence number is ', w.LaneOrdinal, ', but that of event ', e.Id, ' is ', e.EnqueueOrdinal)
       WHEN e.DeliverySequence <> w.DeliverySequence OR ABS(TIMESTAMPDIFF(MICROSECOND, e.CreatedDate, w.EventCreatedDate)) >= 1000000
         THEN CONCAT('its recorded order differs from that of event ', e.Id)
       WHEN w.ClaimedAt IS NOT NULL AND e.ExecutorOwner = 'event'
         THEN CONCAT('it was claimed, but an older version of Headrace may run event ', e.Id, ' too, or has')
       WHEN w.ReplayOfWorkId IS NULL THEN CONCAT('it is not a replay, but selects the replay event ', e.Id)
       ELSE CONCAT('it is a replay, but event ', e.Id, ' is not a replay event') END
FROM `_System_ConnectorWorkItem` w LEFT JOIN `_System_ConnectorEvent` e ON e.Id = w.EventId
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND (e.Id IS NULL OR NOT (e.ProjectionKey <=> w.ProjectionKey) OR e.Namespace <> w.Namespace OR e.EnqueueOrdinal <> w.LaneOrdinal
    OR e.DeliverySequence <> w.DeliverySequence OR ABS(TIMESTAMPDIFF(MICROSECOND, e.CreatedDate, w.EventCreatedDate)) >= 1000000
    OR (w.ClaimedAt IS NOT NULL AND e.ExecutorOwner = 'event')
    OR (w.ReplayOfWorkId IS NULL AND e.ReplayOfEventId IS NOT NULL) OR (w.ReplayOfWorkId IS NOT NULL AND e.ReplayOfEventId IS NULL))
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_terminal_state
SELECT COUNT(*) OVER (), w.WorkId,
  CASE WHEN w.State NOT IN ('pending', 'blocked', 'processing', 'retry', 'processed', 'skipped', 'dead', 'cancelled')
         THEN CONCAT('its state ', w.State, ' is unknown')
       WHEN w.State IN ('pending', 'blocked', 'processing', 'retry') AND w.TerminalAt IS NOT NULL
         THEN CONCAT('it is ', w.State, ', but has an end time')
       WHEN w.TerminalAt IS NULL THEN CONCAT('it is ', w.State, ', but has no end time')
       WHEN w.ProjectionActiveKey IS NOT NULL THEN CONCAT('it is ', w.State, ', but is still the active generation')
       WHEN w.LaneHolderKey IS NOT NULL THEN CONCAT('it is ', w.State, ', but still holds its lane')
       WHEN w.LeaseToken IS NOT NULL OR w.LeaseExpiresAt IS NOT NULL THEN CONCAT('it is ', w.State, ', but has a lease')
       ELSE CONCAT('it is ', w.State, ' and discarded; only a dead item can be discarded') END
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND NOT (
    (w.State IN ('pending', 'blocked', 'processing', 'retry') AND w.TerminalAt IS NULL AND w.DiscardedAt IS NULL)
    OR (w.State IN ('processed', 'skipped', 'dead', 'cancelled') AND w.TerminalAt IS NOT NULL AND w.ProjectionActiveKey IS NULL
      AND w.LaneHolderKey IS NULL AND w.LeaseToken IS NULL AND w.LeaseExpiresAt IS NULL
      AND (w.DiscardedAt IS NULL OR w.State = 'dead')))
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_lease
SELECT COUNT(*) OVER (), w.WorkId,
  CASE WHEN w.State = 'processing' AND (w.LeaseToken IS NULL OR w.LeaseExpiresAt IS NULL) THEN 'it is processing, but has no lease'
       WHEN w.State <> 'processing' AND (w.LeaseToken IS NOT NULL OR w.LeaseExpiresAt IS NOT NULL)
         THEN CONCAT('it is ', w.State, ', but has a lease')
       WHEN w.ClaimedAt IS NULL THEN CONCAT('it is ', w.State, ', but was never claimed')
       ELSE CONCAT('it was claimed, but is ', w.State) END
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND ((w.State = 'processing' AND (w.LeaseToken IS NULL OR w.LeaseExpiresAt IS NULL OR w.ClaimedAt IS NULL))
    OR (w.State IN ('pending', 'blocked', 'retry') AND (w.LeaseToken IS NOT NULL OR w.LeaseExpiresAt IS NOT NULL))
    OR (w.State = 'retry' AND w.ClaimedAt IS NULL)
    OR (w.State IN ('pending', 'blocked') AND w.ClaimedAt IS NOT NULL))
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_ranges_distinct
-- A generation's range ends at its selected event, so two ordinary ones that select one event share it. Index: ix_work_coverage.
SELECT COUNT(*) OVER (), w.WorkId, w.LaneOrdinal, w.ProjectionKey
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s AND w.ProjectionKey IS NOT NULL AND w.ReplayOfWorkId IS NULL
  AND (SELECT o.Id FROM `_System_ConnectorWorkItem` o FORCE INDEX (ix_work_coverage)
       WHERE o.ProjectionKey = w.ProjectionKey AND o.LaneOrdinal = w.LaneOrdinal AND o.ReplayOfWorkId IS NULL AND o.Id < w.Id
         AND (w.LaneOrdinal > 0 OR o.EventId = w.EventId) LIMIT 1) IS NOT NULL
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_lane_holder
SELECT COUNT(*) OVER (), w.WorkId, w.State, COALESCE(w.LaneKey, 'none'), COALESCE(w.LaneHolderKey, 'none')
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s
  AND ((w.State IN ('processing', 'retry') AND NOT (w.LaneHolderKey <=> w.LaneKey))
    OR (w.State IN ('pending', 'blocked') AND w.LaneHolderKey IS NOT NULL))
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_one_holder
-- Index: ix_work_lane.
SELECT COUNT(*) OVER (), w.WorkId, w.LaneKey
FROM `_System_ConnectorWorkItem` w
WHERE w.Id > %(after)s AND w.Id <= %(last)s AND w.State IN ('processing', 'retry') AND w.LaneKey IS NOT NULL
  AND (SELECT o.Id FROM `_System_ConnectorWorkItem` o FORCE INDEX (ix_work_lane)
       WHERE o.LaneKey = w.LaneKey AND o.State IN ('processing', 'retry') AND o.Id < w.Id LIMIT 1) IS NOT NULL
ORDER BY w.Id LIMIT %(limit)s

-- name: audit_lane_stranded
-- A live blocked item needs a pending one ahead of it, or a holder of its lane: that one's end unblocks it. One look-up each, however
-- deep the lane. Indexes: LaneHolderKey, ix_work_lane.
SELECT COUNT(*) OVER (), b.WorkId, COALESCE(b.LaneKey, 'none')
FROM `_System_ConnectorWorkItem` b
WHERE b.Id > %(after)s AND b.Id <= %(last)s AND b.State = 'blocked'
  AND (b.ProjectionKey IS NULL OR b.ProjectionActiveKey IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorWorkItem` h WHERE h.LaneHolderKey = b.LaneKey)
  AND (SELECT a.Id FROM `_System_ConnectorWorkItem` a FORCE INDEX (ix_work_lane)
       WHERE a.LaneKey = b.LaneKey AND a.State = 'pending'
         AND (a.LanePosition < b.LanePosition OR (a.LanePosition = b.LanePosition AND a.Id < b.Id)) LIMIT 1) IS NULL
ORDER BY b.Id LIMIT %(limit)s

-- name: audit_lane_first_due
-- The first due item of a free lane is claimable: a due blocked item has a due unblocked one ahead of it, or the lane a holder. One
-- that waits behind settling items only would wait for them. A lane on hold waits for its operator. Indexes: LaneHolderKey, ix_work_lane.
SELECT COUNT(*) OVER (), b.WorkId, b.LaneKey
FROM `_System_ConnectorWorkItem` b
WHERE b.Id > %(after)s AND b.Id <= %(last)s AND b.State = 'blocked' AND b.RunAfter <= UTC_TIMESTAMP(6) AND b.LaneKey IS NOT NULL
  AND (b.ProjectionKey IS NULL OR b.ProjectionActiveKey IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorLaneHold` x
    WHERE x.LaneKey = b.LaneKey AND (x.ReleaseAt IS NULL OR x.ReleaseAt > UTC_TIMESTAMP(6)))
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorWorkItem` h WHERE h.LaneHolderKey = b.LaneKey)
  AND (SELECT a.Id FROM `_System_ConnectorWorkItem` a FORCE INDEX (ix_work_lane)
       WHERE a.LaneKey = b.LaneKey AND a.State = 'pending' AND a.RunAfter > UTC_TIMESTAMP(6)
         AND (a.LanePosition < b.LanePosition OR (a.LanePosition = b.LanePosition AND a.Id < b.Id)) LIMIT 1) IS NOT NULL
  AND (SELECT d.Id FROM `_System_ConnectorWorkItem` d FORCE INDEX (ix_work_lane)
       WHERE d.LaneKey = b.LaneKey AND d.State = 'pending' AND d.RunAfter <= UTC_TIMESTAMP(6)
         AND (d.LanePosition < b.LanePosition OR (d.LanePosition = b.LanePosition AND d.Id < b.Id)) LIMIT 1) IS NULL
ORDER BY b.Id LIMIT %(limit)s
