-- What the audit reads in the ingress' tables; the form of the answers is that of projection/sql/audit.sql.

-- name: audit_receipt_body
-- Rehashes every body of the page inside the server.
SELECT COUNT(*) OVER (), r.Id, r.BodySha256
FROM `_System_ConnectorReceipt` r
WHERE r.Id > %(after)s AND r.Id <= %(last)s AND r.ErasureId IS NULL
  AND CAST(SHA2(r.Body, 256) AS BINARY) <> CAST(r.BodySha256 AS BINARY)
ORDER BY r.Id LIMIT %(limit)s

-- name: audit_receipt_tombstone
-- What was erased is gone, and the audit trail says who erased it.
SELECT COUNT(*) OVER (), r.Id,
  CASE WHEN LENGTH(r.Body) > 0 OR r.Headers <> '{}' OR r.Url <> '' THEN CONCAT('erasure ', r.ErasureId, ' did not remove its body or headers')
       ELSE CONCAT('it was erased, but entry ', r.ErasureId, ' of the audit log, which explains it, is missing') END
FROM `_System_ConnectorReceipt` r
WHERE r.Id > %(after)s AND r.Id <= %(last)s AND r.ErasureId IS NOT NULL
  AND (LENGTH(r.Body) > 0 OR r.Headers <> '{}' OR r.Url <> ''
    OR NOT EXISTS (SELECT 1 FROM `_System_ConnectorAudit` a WHERE a.Id = r.ErasureId AND a.Action IN ('source.erase', 'receipt.erase')))
ORDER BY r.Id LIMIT %(limit)s

-- name: audit_event_erasure
SELECT COUNT(*) OVER (), e.Id, e.ErasureId
FROM `_System_ConnectorEvent` e
WHERE e.Id > %(after)s AND e.Id <= %(last)s AND e.ErasureId IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM `_System_ConnectorAudit` a WHERE a.Id = e.ErasureId AND a.Action IN ('source.erase', 'receipt.erase'))
ORDER BY e.Id LIMIT %(limit)s

-- name: audit_receipt_routed
SELECT COUNT(*) OVER (), r.Id,
  CASE WHEN r.State NOT IN ('routed', 'partial') THEN CONCAT('it is ', r.State, ', but has a routing time')
       WHEN r.RoutedAt IS NULL THEN 'it is routed, but has no routing time'
       ELSE 'it is routed, but has no counts' END
FROM `_System_ConnectorReceipt` r
WHERE r.Id > %(after)s AND r.Id <= %(last)s
  AND ((r.State IN ('routed', 'partial') AND (r.RoutedAt IS NULL OR r.ItemCount IS NULL OR r.EventCount IS NULL OR r.DuplicateCount IS NULL
                                OR r.ConflictCount IS NULL OR r.RejectedCount IS NULL))
    OR (r.State IN ('pending', 'quarantined', 'conflict') AND r.RoutedAt IS NOT NULL))
ORDER BY r.Id LIMIT %(limit)s

-- name: audit_next_ordinal
-- One row for each namespace that has events; loose scan of ix_event_ordinal.
SELECT COUNT(*) OVER (), u.Namespace, COALESCE(n.NextEnqueueOrdinal, 0), u.Greatest
FROM (SELECT Namespace, MAX(EnqueueOrdinal) AS Greatest FROM `_System_ConnectorEvent` GROUP BY Namespace) u
LEFT JOIN `_System_ConnectorNamespace` n ON n.Name = u.Namespace
WHERE COALESCE(n.NextEnqueueOrdinal, 0) <= u.Greatest
ORDER BY u.Namespace LIMIT %(limit)s
