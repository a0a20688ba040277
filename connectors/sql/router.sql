-- Statements of the router (protocol 2): receipts of one namespace, in order, by state and never by a cursor.

-- name: read_namespaces_with_pending
-- Namespaces that have a receipt to route now. Loose scan of ix_receipt_pending.
SELECT DISTINCT Namespace FROM `_System_ConnectorReceipt` WHERE State = 'pending'

-- name: read_pending_receipts
-- Oldest first by (ReceivedAt, Id), those whose back-off is over; no lock. Index: ix_receipt_pending.
SELECT Id, LENGTH(Body) FROM `_System_ConnectorReceipt`
WHERE State = 'pending' AND Namespace = %(namespace)s AND (NextAttemptAt IS NULL OR NextAttemptAt <= UTC_TIMESTAMP(6))
ORDER BY ReceivedAt, Id LIMIT %(limit)s

-- name: read_receipt_bodies
-- Receipts whole, to be read outside any transaction. No lock.
SELECT Id, PackId, IdempotencyKey, Body, Headers, Method, Url FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s

-- name: read_current_route_ids
-- Route versions in force, under the namespace lock (publishing takes it too). No lock of its own.
SELECT Id FROM `_System_ConnectorRoute` WHERE Namespace = %(namespace)s AND IsCurrent = 1

-- name: lock_receipts
-- Locks receipts by ascending id, after the namespace and the packs. A state other than `pending`: another router was first.
SELECT Id, State FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE

-- name: mark_receipts
-- Acknowledges locked receipts with their counts. {counts} is a derived table of numbers (Id, ItemCount, EventCount, DuplicateCount,
-- ConflictCount, RejectedCount). Fewer rows than given: cannot be, they are locked.
UPDATE `_System_ConnectorReceipt` r JOIN ({counts}) c ON c.Id = r.Id
SET r.State = 'routed', r.RoutedAt = UTC_TIMESTAMP(6), r.ItemCount = c.ItemCount, r.EventCount = c.EventCount,
    r.DuplicateCount = c.DuplicateCount, r.ConflictCount = c.ConflictCount, r.RejectedCount = c.RejectedCount, r.LastError = NULL
WHERE r.State = 'pending'

-- name: note_verdicts
-- Item verdicts of locked receipts. {verdicts} is a derived table (Id, Verdict).
UPDATE `_System_ConnectorReceipt` r JOIN ({verdicts}) v ON v.Id = r.Id SET r.Verdicts = v.Verdict

-- name: reject_receipts
-- Receipts whose body is unreadable; their bytes are kept. {reasons} is a derived table (Id, Reason).
UPDATE `_System_ConnectorReceipt` r JOIN ({reasons}) v ON v.Id = r.Id
SET r.State = 'rejected', r.RoutedAt = UTC_TIMESTAMP(6), r.LastError = v.Reason, r.EventCount = 0
WHERE r.State = 'pending'

-- name: read_attempts
-- Failed admissions of a receipt so far. No lock: one router at a time admits its namespace.
SELECT Attempts FROM `_System_ConnectorReceipt` WHERE Id = %(id)s

-- name: defer_receipt
-- A receipt whose own admission fails: it waits while later ones pass. 0 rows: routed meanwhile.
UPDATE `_System_ConnectorReceipt`
SET Attempts = Attempts + 1, LastError = %(error)s, State = %(state)s,
    NextAttemptAt = UTC_TIMESTAMP(6) + INTERVAL %(delay)s SECOND
WHERE Id = %(id)s AND State = 'pending'

-- name: release_quarantined
-- An operator's re-route. 0 rows: the receipt is not quarantined.
UPDATE `_System_ConnectorReceipt` SET State = 'pending', Attempts = 0, NextAttemptAt = NULL WHERE Id = %(id)s AND State = 'quarantined'
