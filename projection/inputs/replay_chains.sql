-- name: read_work_items
-- Work items as they stand, for previews. No lock. Missing rows: not retained.
SELECT {work_columns} FROM `_System_ConnectorWorkItem` WHERE Id IN %(ids)s

-- name: read_work_ids
-- Ids of work items by WorkId. No lock. Missing rows: not retained.
SELECT WorkId, Id FROM `_System_ConnectorWorkItem` WHERE WorkId IN %(work_ids)s

-- name: read_next_replays
-- The replay of each given item: (replayed WorkId, replay's WorkId, replay's id). Index: unique ReplayOfWorkId. No row: not replayed.
SELECT ReplayOfWorkId, WorkId, Id FROM `_System_ConnectorWorkItem` FORCE INDEX (ReplayOfWorkId) WHERE ReplayOfWorkId IN %(work_ids)s

-- name: read_scopes
-- Nonterminal generations of the source scopes of the given items, of whatever pack, route or companion. No lock. Index: ix_work_scope.
SELECT w.Id FROM `_System_ConnectorWorkItem` d FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_scope)
  ON w.SourceScopeKey = d.SourceScopeKey AND w.State IN ('pending', 'blocked', 'processing', 'retry')
WHERE d.Id IN %(ids)s AND d.ExecutionClass = 'projection' AND w.ExecutionClass = 'projection'
