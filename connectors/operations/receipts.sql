-- Stored receipts that are read again (docs/protocol.md#reading-again).

-- name: lock_receipts_to_reread
-- Receipts by ascending id, with how many events each brought and how many of those are still stored. Indexes: primary key,
-- ix_event_receipt.
SELECT r.Id, r.State, r.ErasureId, COALESCE(r.EventCount, 0),
  (SELECT COUNT(*) FROM `_System_ConnectorEvent` e
   WHERE e.ReceiptId = r.Id AND e.RoutedFromEventId IS NULL AND e.ReplayOfEventId IS NULL)
FROM `_System_ConnectorReceipt` r WHERE r.Id IN %(ids)s ORDER BY r.Id FOR UPDATE

-- name: reread_receipts
-- Back to the router with a fresh budget of attempts; due from now, however long ago they arrived. Rows are locked.
UPDATE `_System_ConnectorReceipt` FORCE INDEX (PRIMARY)
SET State = 'pending', Attempts = 0, NextAttemptAt = UTC_TIMESTAMP(6), RoutedAt = NULL WHERE Id IN %(ids)s
