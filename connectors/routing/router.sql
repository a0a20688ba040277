-- Statements of the router (docs/protocol.md#admit): receipts of one namespace, in order, by state and never by a cursor.

-- name: read_namespaces_with_pending
-- Namespaces that have a receipt to route now. Loose scan of ix_receipt_pending.
SELECT DISTINCT Namespace FROM `_System_ConnectorReceipt` WHERE State = 'pending'

-- name: read_pending_receipts
-- Oldest first by (ReceivedAt, Id), those whose back-off is over, with whether each was read before; no lock.
-- Index: ix_receipt_pending.
SELECT Id, LENGTH(Body), EventCount IS NOT NULL FROM `_System_ConnectorReceipt`
WHERE State = 'pending' AND Namespace = %(namespace)s AND (NextAttemptAt IS NULL OR NextAttemptAt <= UTC_TIMESTAMP(6))
ORDER BY ReceivedAt, Id LIMIT %(limit)s

-- name: read_receipt_bodies
-- Receipts whole, to be read outside any transaction. No lock.
SELECT Id, PackId, IdempotencyKey, Body, Headers, Method, Url, Account FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s

-- name: read_current_route_ids
-- Route versions in force, under the namespace lock (publishing takes it too). No lock of its own.
SELECT Id FROM `_System_ConnectorRoute` WHERE Namespace = %(namespace)s AND IsCurrent = 1

-- name: lock_receipts
-- Locks receipts by ascending id, after the namespace and the packs. A state other than `pending`: another router was first.
-- EventCount: its events so far; NULL: it was never read before.
SELECT Id, State, EventCount FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE

-- name: read_items_of_receipts
-- Hashes of the items of receipts that became events. No lock: the namespace is locked. Index: ix_event_receipt.
SELECT DISTINCT ReceiptId, PayloadSha256 FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_receipt) WHERE ReceiptId IN %(ids)s

-- name: mark_receipts
-- Acknowledges locked receipts, each with its own counts. Rows by primary key. Fewer rows than given: cannot be, they are locked.
UPDATE `_System_ConnectorReceipt` FORCE INDEX (PRIMARY)
SET State = {State}, RoutedAt = UTC_TIMESTAMP(6), ItemCount = {ItemCount}, EventCount = {EventCount},
    DuplicateCount = {DuplicateCount}, ConflictCount = {ConflictCount}, RejectedCount = {RejectedCount}, ReadingKey = {ReadingKey},
    Verdicts = NULL, LastError = NULL
WHERE Id IN %s AND State = 'pending'

-- name: note_verdicts
-- Item verdicts of locked receipts, each row its own. Rows by primary key.
UPDATE `_System_ConnectorReceipt` FORCE INDEX (PRIMARY) SET Verdicts = {Verdicts} WHERE Id IN %s

-- name: reject_receipts
-- Receipts whose body is unreadable, each with its reason; their bytes are kept. Of one that was read before, what it brought then
-- stays counted. Rows by primary key.
UPDATE `_System_ConnectorReceipt` FORCE INDEX (PRIMARY)
SET State = CASE WHEN EventCount > 0 THEN 'partial' ELSE 'rejected' END, RoutedAt = UTC_TIMESTAMP(6), LastError = {LastError},
    ReadingKey = {ReadingKey}, EventCount = COALESCE(EventCount, 0)
WHERE Id IN %s AND State = 'pending'

-- name: read_attempts
-- Failed admissions of a receipt so far. No lock: one router at a time admits its namespace.
SELECT Attempts FROM `_System_ConnectorReceipt` WHERE Id = %(id)s

-- name: defer_receipt
-- A receipt whose own admission fails: it waits while later ones pass. 0 rows: routed meanwhile.
UPDATE `_System_ConnectorReceipt`
SET Attempts = Attempts + 1, LastError = %(error)s, State = %(state)s,
    NextAttemptAt = UTC_TIMESTAMP(6) + INTERVAL %(delay)s SECOND
WHERE Id = %(id)s AND State = 'pending'
