-- Retention (docs/protocol.md#retention). Candidates are read without locks, locked by ascending id, and every condition is checked
-- again on what is read after the locks.

-- name: read_ended_before
-- A page of items that ended before their term, by (TerminalAt, Id) behind a position, and whether there is something to do about
-- each: a per-event item, or the oldest generation of a projection that has another one (of those from before ordinals any may be the
-- oldest). No lock. A page is bounded in rows read, not found. Forced indexes: ix_work_terminal, then ix_work_coverage alone. (The state is a
-- range of one value: by equality an optimizer may take it alone as the key, and read everything that ever ended so.)
SELECT w.TerminalAt, w.Id, w.ProjectionKey,
  w.ReplayOfWorkId IS NULL
  AND (w.State <> 'dead' OR w.DiscardedAt IS NOT NULL OR w.TerminalAt < %(dead_before)s)
  AND (w.ProjectionKey IS NULL
    OR ((SELECT o.Id FROM `_System_ConnectorWorkItem` o FORCE INDEX (ix_work_coverage)
         WHERE o.ProjectionKey = w.ProjectionKey AND o.LaneOrdinal > 0 AND o.LaneOrdinal < w.LaneOrdinal
           AND o.ReplayOfWorkId IS NULL LIMIT 1) IS NULL
      AND (SELECT n.Id FROM `_System_ConnectorWorkItem` n FORCE INDEX (ix_work_coverage)
           WHERE n.ProjectionKey = w.ProjectionKey AND n.WorkId <> w.WorkId AND n.ReplayOfWorkId IS NULL LIMIT 1) IS NOT NULL))
FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_terminal)
WHERE w.State >= %(state)s AND w.State <= %(state)s AND w.TerminalAt < %(before)s AND w.TerminalAt >= %(after_time)s
  AND (w.TerminalAt, w.Id) > (%(after_time)s, %(after_id)s)
ORDER BY w.State, w.TerminalAt, w.Id LIMIT %(limit)s

-- name: read_oldest_generations
-- The oldest ordinary generations of a projection behind an ordinal, one more than a unit takes. No lock. Index: ix_work_coverage.
(SELECT ProjectionKey, Id, EventId, LaneOrdinal, EventCreatedDate, DeliverySequence
 FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_coverage)
 WHERE ProjectionKey = %s AND LaneOrdinal > %s AND ReplayOfWorkId IS NULL ORDER BY LaneOrdinal, EventId LIMIT %s)

-- name: read_event_limit
-- The ordinal of the first event behind those that a unit may remove of a projection. No row: it has fewer. Index alone: ix_event_range.
(SELECT ProjectionKey, EnqueueOrdinal FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_range)
 WHERE ProjectionKey = %s AND EnqueueOrdinal > %s ORDER BY EnqueueOrdinal LIMIT 1 OFFSET %s)

-- name: delete_range
-- Ordinary events of a projection from its oldest end through an ordinal. Index: ix_event_range. The events of no other generation.
DELETE FROM `_System_ConnectorEvent`
WHERE ProjectionKey = %(key)s AND EnqueueOrdinal <= %(through)s AND ReplayOfEventId IS NULL

-- name: read_range
-- Ids of what `delete_range` would remove behind an ordinal, for a dry run. No lock.
SELECT Id FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_range)
WHERE ProjectionKey = %(key)s AND EnqueueOrdinal > %(after)s AND EnqueueOrdinal <= %(through)s AND ReplayOfEventId IS NULL

-- name: delete_events
-- Events by id, whose items are locked and go with them (or which never had any).
DELETE FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s

-- name: delete_failures
-- The history of items that go. Index: ux_failure_attempt.
DELETE FROM `_System_ConnectorWorkFailure` WHERE WorkItemId IN %(ids)s

-- name: delete_work_items
-- Locked, terminal items. Fewer rows than given cannot be.
DELETE FROM `_System_ConnectorWorkItem` WHERE Id IN %(ids)s

-- name: read_receipts_before
-- A page of routed receipts by (ReceivedAt, Id) behind a position: no event is older than its receipt. No lock. Index alone:
-- ix_receipt_state, forced, and the state as in read_ended_before.
SELECT ReceivedAt, Id FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_state)
WHERE State >= %(state)s AND State <= %(state)s AND ReceivedAt < %(before)s AND ReceivedAt >= %(after_time)s
  AND (ReceivedAt, Id) > (%(after_time)s, %(after_id)s)
ORDER BY State, ReceivedAt, Id LIMIT %(limit)s

-- name: read_old_unrouted_events
-- Facts of these receipts that no route took, older than their term. No lock. Index: ix_event_receipt.
SELECT e.Id FROM `_System_ConnectorEvent` e FORCE INDEX (ix_event_receipt)
WHERE e.ReceiptId IN %(receipt_ids)s AND e.RouteId IS NULL AND e.CreatedDate < %(before)s
