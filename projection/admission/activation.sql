-- name: read_checkpoint
-- The checkpoint row. 0 rows: not activated.
SELECT ProtocolVersion, SchemaFingerprint FROM `_System_ConnectorProjectionProtocol` WHERE Id = 1

-- name: read_older_identities
-- 1 where the checkpoint is of an older protocol and an event or receipt is kept. 0 rows: nothing older is there.
SELECT 1 FROM `_System_ConnectorProjectionProtocol` WHERE Id = 1 AND ProtocolVersion < %(version)s
  AND (EXISTS (SELECT 1 FROM `_System_ConnectorEvent`) OR EXISTS (SELECT 1 FROM `_System_ConnectorReceipt`))

-- name: read_columns
-- What the database really has, names in whatever case it keeps them.
SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()

-- name: write_checkpoint
-- Idempotent: a second activation of the same protocol keeps the first one's time.
INSERT INTO `_System_ConnectorProjectionProtocol` (Id, ProtocolVersion, SchemaFingerprint, ActivatedAt, ActivatedBy)
VALUES (1, %(version)s, %(fingerprint)s, UTC_TIMESTAMP(6), %(by)s)
ON DUPLICATE KEY UPDATE ProtocolVersion = VALUES(ProtocolVersion), SchemaFingerprint = VALUES(SchemaFingerprint)
