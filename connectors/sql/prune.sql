-- name: read_old_receipts
-- Receipts past their term that are neither pending nor quarantined and of which no event is retained. Index: ix_receipt_state,
-- ix_event_receipt. Oldest first, behind a position.
SELECT r.ReceivedAt, r.Id FROM `_System_ConnectorReceipt` r
WHERE r.State = %(state)s AND r.ReceivedAt < %(before)s AND r.ReceivedAt >= %(after_time)s
  AND (r.ReceivedAt, r.Id) > (%(after_time)s, %(after_id)s)
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorEvent` e WHERE e.ReceiptId = r.Id)
ORDER BY r.ReceivedAt, r.Id LIMIT %(limit)s

-- name: delete_receipts
-- The state is demanded again: an operator may have re-routed one. Fewer rows than given: those stay.
DELETE FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s AND State = %(state)s
