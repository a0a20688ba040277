-- name: cancel_work_items
-- Ends locked items that nobody executes. 0 rows: claimed or ended meanwhile.
UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)
SET State = 'cancelled', TerminalAt = UTC_TIMESTAMP(6), ProjectionActiveKey = NULL, LaneHolderKey = NULL
WHERE Id IN %(ids)s AND State IN ('pending', 'blocked', 'retry')
