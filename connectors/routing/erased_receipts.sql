-- Erasure of bodies: receipts that hold an erased person's items become tombstones with ids, counts and hashes.

-- name: read_receipts_to_erase
-- Those of the receipts whose bodies are still there, with their verdicts. Locked by ascending id: two erasures, and a router that
-- erases what comes again, go one after the other. A pending or quarantined one is nobody's to erase here.
SELECT Id, Verdicts, RejectedCount FROM `_System_ConnectorReceipt`
WHERE Id IN %(ids)s AND ErasureId IS NULL AND State IN ('routed', 'partial', 'rejected', 'conflict') ORDER BY Id FOR UPDATE

-- name: erase_receipts
-- The tombstone, each with its own verdicts (whose reasons may quote the body). Rows by primary key, locked before.
UPDATE `_System_ConnectorReceipt` FORCE INDEX (PRIMARY)
SET Body = '', Headers = '{}', Url = '', LastError = NULL, Verdicts = {Verdicts}, ErasureId = %s
WHERE Id IN %s AND ErasureId IS NULL
