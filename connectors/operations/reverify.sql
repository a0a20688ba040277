-- name: read_unverified_ids
-- Ids of what an endpoint holds and has not admitted, oldest first. No lock.
SELECT Id FROM `_System_ConnectorUnverified` WHERE EndpointId = %(endpoint_id)s AND AdmittedReceiptId IS NULL ORDER BY Id

-- name: read_not_kept
-- How many found no place. One row, by primary key. No lock.
SELECT UnverifiedNotKept FROM `_System_ConnectorEndpoint` WHERE Id = %(endpoint_id)s

-- name: lock_unverified_delivery
-- One held delivery, locked until it is admitted. 0 rows: another operator admitted it, or it was pruned.
SELECT Body, Headers, Url, Evidence, ReceivedAt FROM `_System_ConnectorUnverified`
WHERE Id = %(id)s AND AdmittedReceiptId IS NULL FOR UPDATE

-- name: admit_unverified_delivery
-- Marks a held delivery with the receipt that it became; its row is locked by `lock_unverified_delivery`.
UPDATE `_System_ConnectorUnverified` SET AdmittedReceiptId = %(receipt_id)s WHERE Id = %(id)s AND AdmittedReceiptId IS NULL
