-- name: read_old_receipts
-- A page of receipts of a state past their term, by (ReceivedAt, Id) behind a position, and whether an event of each is retained. No
-- lock. A page is bounded in rows read, not found. Indexes alone, forced: ix_receipt_state (the state as in `read_ended_before`),
-- ix_event_receipt.
SELECT r.ReceivedAt, r.Id,
  (SELECT e.Id FROM `_System_ConnectorEvent` e FORCE INDEX (ix_event_receipt) WHERE e.ReceiptId = r.Id LIMIT 1) IS NOT NULL
FROM `_System_ConnectorReceipt` r FORCE INDEX (ix_receipt_state)
WHERE r.State >= %(state)s AND r.State <= %(state)s AND r.ReceivedAt < %(before)s AND r.ReceivedAt >= %(after_time)s
  AND (r.ReceivedAt, r.Id) > (%(after_time)s, %(after_id)s)
ORDER BY r.State, r.ReceivedAt, r.Id LIMIT %(limit)s

-- name: read_events_of_receipts
-- Which events of these receipts are retained. No lock. Index alone: ix_event_receipt.
SELECT ReceiptId, Id FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_receipt) WHERE ReceiptId IN %(ids)s

-- name: read_body_lengths
-- Size of the bodies that are about to go. No lock.
SELECT Id, LENGTH(Body) FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s ORDER BY Id

-- name: delete_receipts
-- The state is demanded again: an operator may have re-routed one. Fewer rows than given: those stay.
DELETE FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s AND State = %(state)s

-- name: read_endpoints_with_unverified
-- Endpoints that hold deliveries which did not verify. No lock. Index alone: ix_unverified_endpoint.
SELECT DISTINCT EndpointId FROM `_System_ConnectorUnverified`

-- name: count_old_unverified
-- How many an endpoint has held for longer than the term: what `prune_unverified_deliveries` would delete. No lock.
SELECT COUNT(*) FROM `_System_ConnectorUnverified`
WHERE EndpointId = %(endpoint_id)s AND ReceivedAt < UTC_TIMESTAMP(6) - INTERVAL %(seconds)s SECOND
