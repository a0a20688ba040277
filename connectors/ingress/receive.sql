-- Statements that receive a delivery. Each is a transaction of its own (autocommit) except where an operator's `reverify` joins them.

-- name: find_endpoint
-- One endpoint with its pack, by namespace and slug. No lock. 0 rows: there is none (or its pack row is gone).
-- The caller compares both names again: a collation may find another one. Index: ux_endpoint_slug, then the pack by id.
SELECT e.Id, e.Namespace, e.Slug, e.PublicUrl, e.Secrets, e.UnverifiedPolicy, e.UnverifiedUntil, e.Limits, e.State, e.DiscardWhenDisabled,
       p.Id, p.Name, p.Incarnation, p.State, p.DiscardWhenDisabled, p.Settings, p.Class, e.Account, e.SignatureScheme
FROM `_System_ConnectorEndpoint` e
JOIN `_System_ConnectorPack` p ON p.Id = e.PackId
WHERE e.Namespace = %(namespace)s AND e.Slug = %(slug)s

-- name: insert_receipt
-- The one write of a delivery. Locks nothing but its own row and unique key; waits only for the same delivery arriving at the same time.
-- Error 1062: this endpoint knows the delivery id (with this body as a conflict, where ConflictHash is not empty).
-- ReceivedAt: now, or (a delivery that was spooled) when it arrived.
INSERT INTO `_System_ConnectorReceipt`
  (Namespace, PackId, PackIncarnation, EndpointId, IdempotencyKey, IdempotencyHash, ConflictHash, Body, BodySha256, Headers, Method, Url,
   ReceivedAt, State, Attempts, ErasureId, Account)
VALUES
  (%(namespace)s, %(pack_id)s, %(pack_incarnation)s, %(endpoint_id)s, %(idempotency_key)s, %(idempotency_hash)s, %(conflict_hash)s,
   %(body)s, %(body_sha256)s, %(headers)s, %(method)s, %(url)s, COALESCE(%(received_at)s, UTC_TIMESTAMP(6)),
   %(state)s, 0, %(erasure_id)s, %(account)s)

-- name: read_first_receipt
-- Id, body hash and erasure of the receipt that stands for a delivery id; and, where something of it was rejected, what it was read by
-- (empty: not known). No lock. 0 rows: it was pruned a moment ago; insert again. Index: ux_receipt_delivery.
SELECT Id, BodySha256, ErasureId,
  CASE WHEN State IN ('partial', 'rejected') AND (RejectedCount > 0 OR LastError IS NOT NULL) THEN COALESCE(ReadingKey, '') END
FROM `_System_ConnectorReceipt`
WHERE EndpointId = %(endpoint_id)s AND IdempotencyHash = %(idempotency_hash)s AND ConflictHash = ''

-- name: read_receipt_again
-- A resend of a delivery of which something was rejected, after its pack or settings changed: back to the router, once. 0 rows: another
-- resend was faster, it was erased, or events of it were pruned (which could not be told from new ones). Locks the receipt alone.
UPDATE `_System_ConnectorReceipt` r
SET r.State = 'pending', r.Attempts = 0, r.NextAttemptAt = UTC_TIMESTAMP(6), r.RoutedAt = NULL
WHERE r.Id = %(id)s AND r.State IN ('partial', 'rejected') AND r.ErasureId IS NULL AND COALESCE(r.ReadingKey, '') <> %(reading_key)s
  AND COALESCE(r.EventCount, 0) <= (SELECT COUNT(*) FROM `_System_ConnectorEvent` e
    WHERE e.ReceiptId = r.Id AND e.RoutedFromEventId IS NULL AND e.ReplayOfEventId IS NULL)

-- name: forget_conflict
-- The other body under a delivery id whose first one was erased meanwhile. 0 rows: the erasure has found it too.
UPDATE `_System_ConnectorReceipt` SET Body = '', Headers = '{}', Url = '', ErasureId = %(erasure_id)s
WHERE EndpointId = %(endpoint_id)s AND IdempotencyHash = %(idempotency_hash)s AND ConflictHash = %(conflict_hash)s AND ErasureId IS NULL

-- name: keep_unverified_delivery
-- Stores a delivery whose signature did not match, apart. 0 rows: the endpoint, or this sender's share of it, is full. No lock beyond
-- its own row; two at once may exceed a bound by one each, which it does not mind. Index: ix_unverified_endpoint.
INSERT INTO `_System_ConnectorUnverified` (EndpointId, Body, BodySha256, Headers, Url, Evidence, Reason, ReceivedAt, Sender, BodyBytes)
SELECT %(endpoint_id)s, %(body)s, %(body_sha256)s, %(headers)s, %(url)s, %(evidence)s, %(reason)s, UTC_TIMESTAMP(6), %(sender)s, %(length)s
FROM (
  SELECT COUNT(*) AS Held, COALESCE(SUM(BodyBytes), 0) AS Bytes, COALESCE(SUM(Sender = %(sender)s), 0) AS OfSender,
    COALESCE(SUM(IF(Sender = %(sender)s, BodyBytes, 0)), 0) AS BytesOfSender
  FROM `_System_ConnectorUnverified` WHERE EndpointId = %(endpoint_id)s
) held
WHERE held.Held < %(most)s AND held.Bytes + %(length)s <= %(most_bytes)s
  AND held.OfSender < %(most_of_sender)s AND held.BytesOfSender + %(length)s <= %(most_bytes_of_sender)s

-- name: count_not_kept
-- Deliveries that failed their check since the last rotation and were not kept. One row, by primary key.
UPDATE `_System_ConnectorEndpoint` SET UnverifiedNotKept = UnverifiedNotKept + %(count)s WHERE Id = %(endpoint_id)s

-- name: prune_unverified_deliveries
-- Deletes what an endpoint has held for longer than the term, a bounded number. 0 rows: nothing is that old.
-- Index: ix_unverified_endpoint.
DELETE FROM `_System_ConnectorUnverified`
WHERE EndpointId = %(endpoint_id)s AND ReceivedAt < UTC_TIMESTAMP(6) - INTERVAL %(seconds)s SECOND
ORDER BY Id LIMIT %(most)s
