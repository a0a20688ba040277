-- Erasure: what has to be found, locked and deleted beside the receipts' bodies (`routing/erased_receipts.sql`).

-- name: reject_quarantined
-- A quarantined receipt that an operator erases is never routed. 0 rows: it is not quarantined (any more).
UPDATE `_System_ConnectorReceipt` SET State = 'rejected', RoutedAt = UTC_TIMESTAMP(6), EventCount = 0
WHERE Id = %(id)s AND State = 'quarantined'

-- name: lock_conflicts_of
-- Other bodies that came under the delivery ids of these receipts and are still there. Locks them, and so waits for one that is just
-- being inserted: what comes later sees that the first is erased. Its indexes are forced: MariaDB read, and locked, every receipt of the
-- endpoint.
SELECT c.Id FROM `_System_ConnectorReceipt` f FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `_System_ConnectorReceipt` c FORCE INDEX (ux_receipt_delivery)
  ON c.EndpointId = f.EndpointId AND c.IdempotencyHash = f.IdempotencyHash AND c.ConflictHash <> ''
WHERE f.Id IN %(ids)s AND f.ConflictHash = '' AND c.ErasureId IS NULL FOR UPDATE

-- name: read_earliest_receipt
-- When the first of these receipts arrived. No lock.
SELECT MIN(ReceivedAt) FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s

-- name: read_repeats
-- A page of a namespace's routed receipts by (ReceivedAt, Id) behind a position, and whether each brought something again and is still
-- there. No lock. Bounded in rows read: the index is forced, or a server would sort the whole table for each page.
SELECT ReceivedAt, Id, (DuplicateCount > 0 OR ConflictCount > 0) AND ErasureId IS NULL
FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_pending)
WHERE State = %(state)s AND Namespace = %(namespace)s AND ReceivedAt >= %(after_time)s AND (ReceivedAt, Id) > (%(after_time)s, %(after_id)s)
ORDER BY ReceivedAt, Id LIMIT %(limit)s

-- name: read_waiting_receipts
-- Receipts of a namespace that are not routed yet, at most a number. No lock. Index: ix_receipt_pending.
SELECT Id, State FROM `_System_ConnectorReceipt`
WHERE State IN ('pending', 'quarantined') AND Namespace = %(namespace)s ORDER BY Id LIMIT %(limit)s

-- name: read_bodies
-- Receipts whole, as `read_receipt_bodies`, to be looked through. No lock.
SELECT Id, PackId, IdempotencyKey, Body, Headers, Method, Url, Account FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s ORDER BY Id

-- name: read_unverified_bodies
-- What the endpoints of a namespace hold that did not verify, behind an id, a few at a time. No lock.
SELECT u.Id, e.PackId, u.Body, u.Headers, u.Url, CASE WHEN e.Account = '' THEN e.Slug ELSE e.Account END
FROM `_System_ConnectorUnverified` u
JOIN `_System_ConnectorEndpoint` e ON e.Id = u.EndpointId
WHERE e.Namespace = %(namespace)s AND u.Id > %(after)s ORDER BY u.Id LIMIT %(limit)s

-- name: delete_unverified
-- Deliveries that nobody proved to be genuine. Fewer rows than given: their hour was over.
DELETE FROM `_System_ConnectorUnverified` WHERE Id IN %(ids)s

-- name: read_records
-- The live records of a source. No lock. Index: ix_record_source. (The caller compares the id again.)
SELECT Id, Account, SourceId FROM `_System_ConnectorRecord`
WHERE SourceId IN %(source_ids)s AND SourceType = %(source_type)s AND Namespace = %(namespace)s AND PackName IN %(pack_names)s

-- name: read_accounts_of_source
-- Accounts that have events (tombstones aside) or records of a type and id. No lock. Indexes: ix_event_source, ix_record_source.
SELECT DISTINCT Account, SourceId FROM `_System_ConnectorEvent`
WHERE SourceId IN %(source_ids)s AND SourceType = %(source_type)s AND Namespace = %(namespace)s AND PackId IN %(pack_ids)s
UNION
SELECT DISTINCT Account, SourceId FROM `_System_ConnectorRecord`
WHERE SourceId IN %(source_ids)s AND SourceType = %(source_type)s AND Namespace = %(namespace)s AND PackName IN %(pack_names)s

-- name: delete_records
-- Live records by id. Fewer rows than given: another erasure was faster.
DELETE FROM `_System_ConnectorRecord` WHERE Id IN %(ids)s

-- name: read_source_events
-- A page of the events of a source that are no tombstones yet, by id. No lock. Index: ix_event_source. (The caller compares the
-- id again: a collation may find another one.)
SELECT Id, Account, SourceId FROM `_System_ConnectorEvent`
WHERE SourceId IN %(source_ids)s AND SourceType = %(source_type)s AND Namespace = %(namespace)s AND PackId IN %(pack_ids)s
  AND Id > %(after)s AND ErasureId IS NULL
ORDER BY Id LIMIT %(limit)s

-- name: read_tombstones
-- A page of the tombstones of a source, by id. No lock. Index: ix_event_source.
SELECT Id, ReceiptId, ErasureId FROM `_System_ConnectorEvent`
WHERE SourceId IN %(source_ids)s AND SourceType = %(source_type)s AND Namespace = %(namespace)s AND PackId IN %(pack_ids)s
  AND Id > %(after)s AND ErasureId IS NOT NULL
ORDER BY Id LIMIT %(limit)s

-- name: read_item_siblings
-- The other events of the items that the given events came from: same receipt, same item, same text. No lock. Index: ix_event_receipt.
SELECT DISTINCT s.Id, s.Account, s.SourceType, s.SourceId
FROM `_System_ConnectorEvent` e
STRAIGHT_JOIN `_System_ConnectorEvent` s FORCE INDEX (ix_event_receipt) ON s.ReceiptId = e.ReceiptId AND s.ReceiptItem = e.ReceiptItem AND s.Id <> e.Id
WHERE e.Id IN %(event_ids)s AND e.ReceiptId > 0 AND s.ErasureId IS NULL
