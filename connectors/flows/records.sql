-- Statements of the live records (flow `record_table`). They join the transaction of the work item's completion.
-- Lock order: records by ascending id; a record that is missing is inserted first, by ascending key.

-- name: read_record_ids
-- Ids of known records. No lock. Fewer rows than keys: the others are new. Index: unique RecordKey.
SELECT RecordKey, Id FROM `_System_ConnectorRecord` WHERE RecordKey IN %(keys)s

-- name: insert_missing_records
-- An empty row for each new record. A row that another transaction inserts at the same time is awaited and then left as it is, so
-- that two routes that feed one record never overwrite each other. (Only placeholders: the driver makes one multi-row text of it.)
INSERT INTO `_System_ConnectorRecord`
  (RecordKey, Namespace, PackName, EventKind, Account, SourceType, SourceId, SourceLane, Properties, Deleted, LifecycleOrdinal,
   EventCount, LastOrdinal, CreatedAt, UpdatedAt)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON DUPLICATE KEY UPDATE RecordKey = VALUES(RecordKey)

-- name: lock_records
-- Locks the rows by ascending id and reads what is committed now, and the clock. Fewer rows than ids: a record was erased meanwhile.
SELECT Id, RecordKey, Properties, Deleted, MergedInto, LifecycleOrdinal, EventCount, LastOrdinal, UTC_TIMESTAMP(6),
  LifecycleReceived, NewestReceived, LateCount
FROM `_System_ConnectorRecord` WHERE Id IN %(ids)s ORDER BY Id FOR UPDATE

-- name: write_records
-- Writes locked rows back; every row exists, so nothing is inserted. (A multi-row text, as above.)
INSERT INTO `_System_ConnectorRecord`
  (Id, RecordKey, Namespace, PackName, EventKind, Account, SourceType, SourceId, SourceLane, Properties, Deleted, MergedInto,
   LifecycleOrdinal, EventCount, LastOrdinal, LifecycleReceived, NewestReceived, LateCount, CreatedAt, UpdatedAt)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON DUPLICATE KEY UPDATE Properties = VALUES(Properties), Deleted = VALUES(Deleted), MergedInto = VALUES(MergedInto),
  LifecycleOrdinal = VALUES(LifecycleOrdinal), EventCount = VALUES(EventCount), LastOrdinal = VALUES(LastOrdinal),
  LifecycleReceived = VALUES(LifecycleReceived), NewestReceived = VALUES(NewestReceived), LateCount = VALUES(LateCount),
  UpdatedAt = VALUES(UpdatedAt)

-- name: read_moments_of_receipts
-- When receipts arrived. No lock. Fewer rows than ids: those are not stored any more.
SELECT Id, ReceivedAt FROM `_System_ConnectorReceipt` WHERE Id IN %(ids)s
