-- Statements of the sweep: unrouted events that a route in force now takes.

-- name: read_unrouted_events
-- Unrouted facts of an id range, oldest first. No lock. Index: primary key.
SELECT Id FROM `_System_ConnectorEvent`
WHERE Id > %(after)s AND Id <= %(through)s AND RouteId IS NULL AND Namespace = %(namespace)s ORDER BY Id

-- name: read_payload_lengths
-- Size of the payloads of facts that are about to be copied. No lock.
SELECT Id, LENGTH(Payload) FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s ORDER BY Id

-- name: count_late_events
-- Of these facts: how many a routed event of the same source is younger than, by the order of receipt. No lock. Indexes: primary keys,
-- ix_event_source.
SELECT COUNT(*) FROM `_System_ConnectorEvent` e
JOIN `_System_ConnectorReceipt` r ON r.Id = e.ReceiptId
WHERE e.Id IN %(ids)s AND EXISTS (
  SELECT 1 FROM `_System_ConnectorEvent` o
  JOIN `_System_ConnectorReceipt` q ON q.Id = o.ReceiptId
  WHERE o.SourceId = e.SourceId AND o.SourceKey = e.SourceKey AND o.Namespace = e.Namespace AND o.RouteId IS NOT NULL
    AND (q.ReceivedAt, q.Id, o.DeliverySequence) > (r.ReceivedAt, r.Id, e.DeliverySequence))
