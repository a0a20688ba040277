-- A made history: rows as admission, work and operators leave them, by arithmetic of a row's number. No statement waits for another's
-- lock; each inserts one piece of one table. Event number n is of block b (n MOD 100) of group g; a block is `per` events of one source,
-- interleaved with the other 99 of its group, and its last event is the one that its work item selects.

-- name: reserve_ordinals
-- Takes so many ordinals of the namespace. 0 rows: there is no such namespace.
UPDATE `_System_ConnectorNamespace` SET NextEnqueueOrdinal = NextEnqueueOrdinal + %(events)s WHERE Name = %(namespace)s

-- name: insert_history_events
-- Events number `first` to before `last`. Every block of a per-event route has one routed event, the last; its others, and what is over, are
-- unrouted.
INSERT INTO `_System_ConnectorEvent`
  (Id, Namespace, PackId, PackIncarnation, ReceiptId, ReceiptItem, RouteId, RouteVersion, RouteSnapshot, EventKind, ProviderKind,
   SourceType, SourceId, SourceKey, SourceLane, TargetMutationLane, DeliveryId, DeliveryKey, DeliverySequence, EnqueueOrdinal,
   Payload, PayloadSha256, ProjectionKey, ExecutorOwner, Status, Attempts, CreatedDate)
SELECT %(event)s + x.n, %(namespace)s, x.PackId, x.Incarnation, %(receipt)s + x.n DIV 10, x.n MOD 10,
  IF(x.Routed, x.RouteId, NULL), IF(x.Routed, x.Version, NULL), IF(x.Routed, x.Snapshot, NULL),
  IF(x.Routed, x.EventKind, x.ProviderKind), x.ProviderKind,
  x.SourceType, x.SourceId, SHA2(CONCAT('0:', {source_type}, {source_id}), 256), x.Lane, '', x.DeliveryId,
  IF(x.Routed, SHA2(CONCAT('64:', {item}, {route_key}), 256), {item}),
  x.n MOD 10, %(ordinal)s + x.n, x.Payload, SHA2(x.Payload, 256),
  IF(x.Routed AND x.Projects, CONCAT('csp:', SHA2(CONCAT({namespace_part}, {incarnation}, {event_kind}, {route_key}, {version},
    {companion_pack}, {companion_flow}, {work_type}, '0:', {lane}), 256)), NULL),
  'work_item', 'skipped', 0, %(begins)s + INTERVAL x.n * %(step)s MICROSECOND
FROM (
  SELECT y.n, r.Id AS RouteId, r.Version, r.Snapshot, r.EventKind, r.RouteKey, r.CompanionPack, r.CompanionFlow, r.WorkType, r.PackId,
    p.Name AS PackName, p.Incarnation, r.InvocationMode <> 'per_event' AS Projects,
    y.n < %(grouped)s AND (r.InvocationMode <> 'per_event' OR y.j = %(per)s - 1) AS Routed,
    CONCAT(y.SourceType, IF(y.j = 0 AND y.g < 2, '.creation', '.propertyChange')) AS ProviderKind, y.SourceType, y.SourceId,
    CONCAT(y.SourceType, ':', y.SourceId) AS Lane, CONCAT('d-', y.n DIV 10, '-', y.n MOD 10) AS DeliveryId,
    CONCAT('{"eventId":', y.n, ',"subscriptionType":"', y.SourceType, '.propertyChange","objectId":', y.SourceId,
      ',"propertyName":"property_', y.j, '","propertyValue":"value ', y.g, ' of ', y.SourceId, '","email":"', y.b, '@example.com"}') AS Payload
  FROM (
    SELECT z.*, ELT(z.b + 1, {types}) AS SourceType, ELT(z.b + 1, {keys}) AS SlotKey,
      CAST(IF(MOD(z.b, 4) = 0, z.b + 1, 1000 + MOD(z.g, %(cold)s) * 100 + z.b) AS CHAR) AS SourceId
    FROM (SELECT n, n MOD 100 AS b, n DIV (100 * %(per)s) AS g, (n DIV 100) MOD %(per)s AS j FROM {numbers} s WHERE n < %(last)s) z
  ) y
  JOIN `_System_ConnectorRoute` r ON r.Namespace = %(namespace)s AND r.RouteKey = y.SlotKey AND r.Version = IF(y.g < %(half)s, 1, 2)
  JOIN `_System_ConnectorPack` p ON p.Id = r.PackId
) x ORDER BY x.n

-- name: insert_history_receipts
-- The receipts of events of a range of ids, each with the bodies of its ten; of some, one more item was rejected.
INSERT INTO `_System_ConnectorReceipt`
  (Id, Namespace, PackId, PackIncarnation, EndpointId, IdempotencyKey, IdempotencyHash, ConflictHash, Body, BodySha256, Headers, Method,
   Url, ReceivedAt, State, Attempts, RoutedAt, ItemCount, EventCount, DuplicateCount, ConflictCount, RejectedCount)
SELECT x.ReceiptId, x.Namespace, x.PackId, x.PackIncarnation, n.Id, CONCAT('d-', x.ReceiptId), SHA2(CONCAT('d-', x.ReceiptId), 256), '',
  x.Body, SHA2(x.Body, 256), '{"content-type": "application/json"}', 'POST', '', x.At,
  IF(x.ReceiptId MOD 50 = 0, 'partial', 'routed'), 1, x.At + INTERVAL 40000 MICROSECOND,
  x.Items + (x.ReceiptId MOD 50 = 0), x.Items, 0, 0, x.ReceiptId MOD 50 = 0
FROM (
  SELECT e.ReceiptId, MIN(e.Namespace) AS Namespace, MIN(e.PackId) AS PackId, MIN(e.PackIncarnation) AS PackIncarnation,
    MIN(e.CreatedDate) AS At, COUNT(*) AS Items, CONCAT('[', GROUP_CONCAT(e.Payload ORDER BY e.Id SEPARATOR ','), ']') AS Body
  FROM `_System_ConnectorEvent` e FORCE INDEX (PRIMARY) WHERE e.Id >= %(first)s AND e.Id < %(last)s GROUP BY e.ReceiptId
) x JOIN `_System_ConnectorEndpoint` n ON n.PackId = x.PackId AND n.Slug = CONCAT('history-', x.PackId)
ORDER BY x.ReceiptId

-- name: insert_history_odd_receipts
-- Receipts without events, spread over the whole time: half rejected, the others quarantined, conflicting or waiting for the router.
INSERT INTO `_System_ConnectorReceipt`
  (Id, Namespace, PackId, PackIncarnation, EndpointId, IdempotencyKey, IdempotencyHash, ConflictHash, Body, BodySha256, Headers, Method,
   Url, ReceivedAt, State, Attempts, LastError)
SELECT %(receipt)s + x.n, %(namespace)s, p.Id, p.Incarnation, e.Id, CONCAT('odd-', x.n), NULL,
  IF(x.n MOD 8 = 6, SHA2(x.Body, 256), ''), x.Body, SHA2(x.Body, 256), '{}', 'POST', '',
  %(begins)s + INTERVAL x.n * %(step)s MICROSECOND,
  ELT(1 + x.n MOD 8, 'rejected', 'rejected', 'rejected', 'rejected', 'quarantined', 'quarantined', 'conflict', 'pending'),
  IF(x.n MOD 8 = 7, 0, 1), IF(x.n MOD 8 = 7, NULL, 'the body is no list of events')
FROM (SELECT n, CONCAT('{"odd":', n, '}') AS Body FROM {numbers} s WHERE n < %(last)s) x
JOIN `_System_ConnectorPack` p ON p.Namespace = %(namespace)s AND p.Name = ELT(1 + x.n MOD 3, {packs})
JOIN `_System_ConnectorEndpoint` e ON e.PackId = p.Id ORDER BY x.n

-- name: last_of_groups
-- A part of the two statements that make one row of each group of events: the last event of each, with its block b and its group g.
SELECT Id, (Id - %(event)s) MOD 100 AS b, (Id - %(event)s) DIV (100 * %(per)s) AS g
FROM `_System_ConnectorEvent` FORCE INDEX (PRIMARY)
WHERE Id >= %(first)s AND Id < %(last)s AND MOD(Id - %(event)s, 100 * %(per)s) >= 100 * (%(per)s - 1)

-- name: insert_history_work
-- The work items of the events of a range of ids. What is older than the last `tail` groups has ended; `dead` of `ended` of them are dead,
-- spread evenly (the k-th of them is where m × dead / ended passes k). Behind them live work: for each cold source its newest item, for
-- each hot projection an active generation and its successor, for each hot per-event source a lane of `tail` items.
INSERT INTO `_System_ConnectorWorkItem`
  (Id, WorkId, ProjectionKey, ProjectionActiveKey, EventId, Namespace, PackId, RouteId, RouteVersion, CompanionPack, CompanionFlow,
   WorkType, ExecutionClass, SourceScopeKey, SourceLane, LaneKey, LaneHolderKey, LanePosition, LaneOrdinal, EventCreatedDate,
   DeliverySequence, QueueClass, State, RunAfter, Attempts, MaxAttempts, LeaseOwner, LeaseToken, LeaseExpiresAt, ClaimedAt,
   FirstClaimedAt, TerminalAt, DiscardedAt, DiscardedBy, DiscardReason, LastError, ErrorFingerprint, CreatedDate)
SELECT %(work)s + x.m, x.WorkId, x.ProjectionKey,
  IF(x.ProjectionKey IS NOT NULL AND x.State IN ('pending', 'retry', 'processing'), x.ProjectionKey, NULL),
  x.EventId, x.Namespace, x.PackId, x.RouteId, x.RouteVersion, x.CompanionPack, x.CompanionFlow, x.WorkType,
  IF(x.ProjectionKey IS NULL, 'per_event', 'projection'), x.ScopeKey, x.SourceLane, x.LaneKey,
  IF(x.State IN ('retry', 'processing'), x.LaneKey, NULL), x.Ordinal, x.Ordinal, x.At, x.DeliverySequence, x.QueueClass, x.State,
  CASE WHEN x.State = 'retry' THEN %(now)s + INTERVAL 60 + x.m MOD 3600 SECOND
       WHEN x.State = 'pending' AND NOT x.Hot AND x.m MOD 3 = 0 THEN %(now)s + INTERVAL 10 + x.m MOD 600 SECOND ELSE x.At END,
  CASE WHEN x.State IN ('pending', 'blocked', 'cancelled') THEN 0 WHEN x.State = 'dead' THEN %(attempts)s ELSE 1 END, %(attempts)s,
  IF(x.State = 'processing', 'history', NULL), IF(x.State = 'processing', LEFT(SHA2(CONCAT('lease', x.m), 256), 36), NULL),
  IF(x.State = 'processing', %(now)s + INTERVAL 1 HOUR, NULL),
  IF(x.State IN ('pending', 'blocked', 'cancelled'), NULL, x.At + INTERVAL 2 SECOND),
  IF(x.State IN ('pending', 'blocked', 'cancelled'), NULL, x.At + INTERVAL 2 SECOND),
  IF(x.State IN ('pending', 'blocked', 'processing', 'retry'), NULL, x.At + INTERVAL IF(x.State = 'dead', 60, 3) + x.m MOD 240 SECOND),
  IF(x.Discarded, x.At + INTERVAL 400 SECOND, NULL), IF(x.Discarded, 'history', NULL), IF(x.Discarded, 'made as a discarded one', NULL),
  IF(x.State IN ('dead', 'retry'), REPLACE(ELT(x.Error + 1, {errors}), '#', x.m), NULL),
  IF(x.State IN ('dead', 'retry'), ELT(x.Error + 1, {fingerprints}), NULL), x.At
FROM (
  SELECT y.*, IF(y.k MOD 3 = 0, 0, 1 + MOD((y.k * 20) DIV %(dead)s + y.k MOD 3, 11)) AS Error,
    y.State = 'dead' AND y.k MOD 8 = 1 AS Discarded
  FROM (
    SELECT z.*, (z.m * %(dead)s) DIV %(ended)s AS k,
      CASE WHEN z.g < %(groups)s - %(tail)s THEN
             IF(((z.m + 1) * %(dead)s) DIV %(ended)s > (z.m * %(dead)s) DIV %(ended)s, 'dead',
                ELT(1 + z.m MOD 17, 'skipped', 'cancelled', 'processed', 'processed', 'processed', 'processed', 'processed', 'processed',
                  'processed', 'processed', 'processed', 'processed', 'processed', 'processed', 'processed', 'processed', 'processed'))
           WHEN z.Hot AND z.ProjectionKey IS NOT NULL THEN
             CASE WHEN z.g < %(groups)s - 2 THEN 'processed' WHEN z.g = %(groups)s - 1 THEN 'blocked'
                  ELSE ELT(1 + (z.b DIV 4) MOD 3, 'pending', 'retry', 'processing') END
           WHEN z.Hot THEN IF(z.g > %(groups)s - %(tail)s, 'blocked', ELT(1 + (z.b DIV 4) MOD 3, 'pending', 'retry', 'processing'))
           ELSE ELT(1 + MOD(z.g * 7 + z.b, 10), 'pending', 'pending', 'pending', 'pending', 'pending', 'pending', 'retry', 'processing',
             'processed', 'processed') END AS State
    FROM (
      SELECT v.g * 100 + v.b AS m, v.g, v.b, MOD(v.b, 4) = 0 AS Hot, e.Id AS EventId, e.ProjectionKey, e.Namespace, e.PackId, e.RouteId,
        e.RouteVersion, r.CompanionPack, r.CompanionFlow, r.WorkType, r.QueueClass, e.SourceLane, e.EnqueueOrdinal AS Ordinal,
        e.CreatedDate AS At, e.DeliverySequence,
        SHA2(CONCAT({event_namespace}, {event_event_kind}, '6:source0:', {event_source_lane}), 256) AS ScopeKey,
        SHA2(CONCAT({event_namespace}, '6:source', {route_companion_pack}, '0:', {event_source_lane}), 256) AS LaneKey,
        CASE WHEN e.ProjectionKey IS NULL THEN CONCAT('evt:', SHA2(CONCAT({event_delivery_key}), 256))
             WHEN v.g IN (0, %(half)s) OR MOD(v.b, 4) <> 0 AND (v.g < %(cold)s OR v.g >= %(half)s AND v.g < %(half)s + %(cold)s)
               THEN CONVERT(e.ProjectionKey USING utf8mb4)
             ELSE CONCAT('csp:', SHA2(CONCAT({event_projection_key}, {event_ordinal}), 256)) END AS WorkId
      FROM ({last_of_groups}) v
      JOIN `_System_ConnectorEvent` e ON e.Id = v.Id JOIN `_System_ConnectorRoute` r ON r.Id = e.RouteId
    ) z
  ) y
) x ORDER BY x.m

-- name: insert_history_replay_events
-- The events of the replays: of every eighth dead item, the first `replays` of them. Index: the primary keys, a range of work items.
INSERT INTO `_System_ConnectorEvent`
  (Id, Namespace, PackId, PackIncarnation, ReceiptId, ReceiptItem, RouteId, RouteVersion, RouteSnapshot, EventKind, ProviderKind,
   SourceType, SourceId, SourceKey, SourceLane, TargetMutationLane, DeliveryId, DeliveryKey, DeliverySequence, EnqueueOrdinal,
   Payload, PayloadSha256, ProjectionKey, ReplayOfEventId, ExecutorOwner, Status, Attempts, CreatedDate)
SELECT %(event)s + d.i, e.Namespace, e.PackId, e.PackIncarnation, e.ReceiptId, e.ReceiptItem, e.RouteId, e.RouteVersion,
  e.RouteSnapshot, e.EventKind, e.ProviderKind, e.SourceType, e.SourceId, e.SourceKey, e.SourceLane, e.TargetMutationLane,
  CONCAT('replay:', d.WorkId), SHA2(CONCAT('replay:', d.WorkId), 256), 0, %(ordinal)s + d.i, e.Payload, e.PayloadSha256,
  e.ProjectionKey, e.Id, 'work_item', 'skipped', 0, %(begins)s + INTERVAL d.i * %(step)s MICROSECOND
FROM (
  SELECT WorkId, EventId, (((Id - %(work)s) * %(dead)s) DIV %(ended)s) DIV 8 AS i
  FROM `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
  WHERE Id >= %(first)s AND Id < %(last)s AND State = 'dead' AND MOD(((Id - %(work)s) * %(dead)s) DIV %(ended)s, 8) = 0
) d JOIN `_System_ConnectorEvent` e ON e.Id = d.EventId WHERE d.i < %(replays)s ORDER BY d.i

-- name: insert_history_replay_work
-- The replays themselves: they ended, every tenth by dying again. Index: ix_work_event, by the event that each one replays.
INSERT INTO `_System_ConnectorWorkItem`
  (Id, WorkId, ProjectionKey, ReplayOfWorkId, EventId, Namespace, PackId, RouteId, RouteVersion, CompanionPack, CompanionFlow,
   WorkType, ExecutionClass, SourceScopeKey, SourceLane, LaneKey, LanePosition, LaneOrdinal, EventCreatedDate, DeliverySequence,
   QueueClass, State, RunAfter, Attempts, MaxAttempts, ClaimedAt, FirstClaimedAt, TerminalAt, LastError, ErrorFingerprint, CreatedDate)
SELECT %(work)s + x.i, CONCAT(IF(d.ProjectionKey IS NULL, 'evt:', 'csp:'), SHA2(CONCAT('replay', d.WorkId), 256)), d.ProjectionKey,
  d.WorkId, e.Id, d.Namespace, d.PackId, d.RouteId, d.RouteVersion, d.CompanionPack, d.CompanionFlow, d.WorkType, d.ExecutionClass,
  d.SourceScopeKey, d.SourceLane, d.LaneKey, e.EnqueueOrdinal, e.EnqueueOrdinal, e.CreatedDate, e.DeliverySequence, d.QueueClass,
  IF(x.i MOD 10 = 0, 'dead', 'processed'), e.CreatedDate, IF(x.i MOD 10 = 0, d.MaxAttempts, 1), d.MaxAttempts,
  e.CreatedDate + INTERVAL 1 SECOND, e.CreatedDate + INTERVAL 1 SECOND, e.CreatedDate + INTERVAL 90 SECOND,
  IF(x.i MOD 10 = 0, d.LastError, NULL), IF(x.i MOD 10 = 0, d.ErrorFingerprint, NULL), e.CreatedDate
FROM (SELECT Id, Id - %(event)s AS i FROM `_System_ConnectorEvent` FORCE INDEX (PRIMARY)
      WHERE Id >= %(event)s AND Id < %(event)s + %(replays)s) x
JOIN `_System_ConnectorEvent` e ON e.Id = x.Id
JOIN `_System_ConnectorWorkItem` d FORCE INDEX (ix_work_event) ON d.EventId = e.ReplayOfEventId ORDER BY x.i

-- name: insert_history_failures
-- The failed attempts of the work items of a range of ids.
INSERT INTO `_System_ConnectorWorkFailure`
  (WorkItemId, WorkId, Attempt, Outcome, Error, ErrorFingerprint, DelayMs, LeaseOwner, CreatedDate)
SELECT w.Id, w.WorkId, a.n, IF(w.State = 'dead' AND a.n = w.Attempts, 'dead', 'retry'), w.LastError, w.ErrorFingerprint,
  IF(w.State = 'dead' AND a.n = w.Attempts, NULL, a.n * 5000), 'history',
  COALESCE(w.TerminalAt, w.ClaimedAt) - INTERVAL (w.Attempts - a.n) * 15 SECOND
FROM `_System_ConnectorWorkItem` w FORCE INDEX (PRIMARY) JOIN (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3) a ON a.n <= w.Attempts
WHERE w.Id >= %(first)s AND w.Id < %(last)s AND w.LastError IS NOT NULL ORDER BY w.Id, a.n

-- name: insert_history_records
-- Live records of the sources whose newest generation is folded, from the selected events of a range of ids.
INSERT INTO `_System_ConnectorRecord`
  (RecordKey, Namespace, PackName, EventKind, SourceType, SourceId, SourceLane, Properties, Deleted, LifecycleOrdinal, EventCount,
   LastOrdinal, CreatedAt, UpdatedAt)
SELECT SHA2(CONCAT({event_namespace}, {route_pack_name}, {event_event_kind}, '0:', {event_source_type},
    {event_source_id}), 256), e.Namespace, r.PackName, e.EventKind, e.SourceType, e.SourceId, e.SourceLane,
  CONCAT('{"email":{"value":"', v.b, '@example.com","ordinal":', e.EnqueueOrdinal, '},"name":{"value":"', e.SourceLane,
    '","ordinal":', e.EnqueueOrdinal, '}}'),
  v.b MOD 50 = 7, e.EnqueueOrdinal, %(per)s, e.EnqueueOrdinal, e.CreatedDate, e.CreatedDate
FROM ({last_of_groups}) v
JOIN `_System_ConnectorEvent` e ON e.Id = v.Id JOIN `_System_ConnectorRoute` r ON r.Id = e.RouteId
WHERE r.CompanionFlow = 'record_table' AND (MOD(v.b, 4) <> 0 OR v.g = %(groups)s - 1) ORDER BY e.Id

-- name: insert_history_holds
-- Holds on some of the lanes whose head waits to start. Index: ix_work_claim, of pending items.
INSERT INTO `_System_ConnectorLaneHold` (Namespace, LaneKey, Lane, Reason, HeldBy, HeldAt)
SELECT w.Namespace, w.LaneKey, w.SourceLane, 'made as a held one', 'history', w.CreatedDate
FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_claim)
WHERE w.State = 'pending' AND w.Namespace = %(namespace)s AND w.LaneKey IS NOT NULL AND w.Id MOD 21 = 1 ORDER BY w.Id

-- name: insert_history_unverified
-- Deliveries whose signature failed.
INSERT INTO `_System_ConnectorUnverified` (EndpointId, Body, BodySha256, Headers, Url, Evidence, Reason, ReceivedAt)
SELECT e.Id, x.Body, SHA2(x.Body, 256), '{}', '', '', 'the signature does not match', %(begins)s + INTERVAL x.n * %(step)s MICROSECOND
FROM (SELECT n, CONCAT('{"unverified":', n, '}') AS Body FROM {numbers} s WHERE n < %(last)s) x
JOIN `_System_ConnectorPack` p ON p.Namespace = %(namespace)s AND p.Name = ELT(1 + x.n MOD 3, {packs})
JOIN `_System_ConnectorEndpoint` e ON e.PackId = p.Id ORDER BY x.n

-- name: insert_history_audit_entries
-- What operators did meanwhile.
INSERT INTO `_System_ConnectorAudit` (`At`, Actor, Action, Target, Reason, `Count`, Detail)
SELECT %(begins)s + INTERVAL n * %(step)s MICROSECOND, 'history', ELT(1 + n MOD 4, 'lane.hold', 'lane.release', 'work.replay', 'work.discard'),
  CONCAT('contact:', n), 'made', 1, '{}' FROM {numbers} s WHERE n < %(last)s ORDER BY n

-- name: insert_history_jobs
-- Ended jobs without items.
INSERT INTO `_System_ConnectorJob`
  (Kind, Filter, Reason, Actor, Retarget, Rate, State, Step, AfterId, Total, Done, Refused, Deferred, Skipped, CreatedDate, FixedAt,
   FinishedAt)
SELECT IF(n MOD 2, 'replay', 'discard'), '{"route": "contacts"}', 'made', 'history', 0, 200, 'finished', 1, 0, 0, 0, 0, 0, 0,
  x.At, x.At, x.At FROM (SELECT n, %(begins)s + INTERVAL n * %(step)s MICROSECOND AS At FROM {numbers} s WHERE n < %(last)s) x ORDER BY n

-- name: insert_history_job_items
-- The items of one job: the replays of a range of work item ids, each with what it replays. Index: unique WorkId.
INSERT INTO `_System_ConnectorJobItem` (JobId, Place, WorkItemId, WorkId, Namespace, ScopeKey, State, Code, ReplayWorkId)
SELECT %(job)s, d.LanePosition, d.Id, d.WorkId, d.Namespace, IF(d.ProjectionKey IS NULL, NULL, d.SourceScopeKey), 'done', '', r.WorkId
FROM `_System_ConnectorWorkItem` r FORCE INDEX (PRIMARY)
JOIN `_System_ConnectorWorkItem` d FORCE INDEX (WorkId) ON d.WorkId = r.ReplayOfWorkId
WHERE r.Id >= %(first)s AND r.Id < %(last)s ORDER BY d.LanePosition, d.Id

-- name: read_what_is_there
-- 1 where events, receipts or work items are kept.
SELECT 1 FROM (
  (SELECT Id FROM `_System_ConnectorEvent` LIMIT 1) UNION ALL (SELECT Id FROM `_System_ConnectorReceipt` LIMIT 1)
  UNION ALL (SELECT Id FROM `_System_ConnectorWorkItem` LIMIT 1)) any_row LIMIT 1

-- name: read_next_ids
-- (event, receipt, work item, job) that come next.
SELECT (SELECT COALESCE(MAX(Id), 0) + 1 FROM `_System_ConnectorEvent`), (SELECT COALESCE(MAX(Id), 0) + 1 FROM `_System_ConnectorReceipt`),
  (SELECT COALESCE(MAX(Id), 0) + 1 FROM `_System_ConnectorWorkItem`), (SELECT COALESCE(MAX(Id), 0) + 1 FROM `_System_ConnectorJob`)
