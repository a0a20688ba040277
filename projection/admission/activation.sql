-- name: read_checkpoint
-- The checkpoint row. 0 rows: not activated.
SELECT ProtocolVersion, SchemaFingerprint FROM `_System_ConnectorProjectionProtocol` WHERE Id = 1

-- name: read_columns
-- What the database really has, names in whatever case it keeps them.
SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()

-- name: write_checkpoint
-- Idempotent: a second activation of the same protocol keeps the first one's time.
INSERT INTO `_System_ConnectorProjectionProtocol` (Id, ProtocolVersion, SchemaFingerprint, ActivatedAt, ActivatedBy)
VALUES (1, %(version)s, %(fingerprint)s, UTC_TIMESTAMP(6), %(by)s)
ON DUPLICATE KEY UPDATE ProtocolVersion = VALUES(ProtocolVersion), SchemaFingerprint = VALUES(SchemaFingerprint)
