-- name: read_work_packs
-- Namespace and pack of work items with the pack's incarnation, whatever its state: a replay without target runs under the same one.
SELECT w.WorkId, w.Namespace, p.Id, p.Incarnation
FROM `_System_ConnectorWorkItem` w JOIN `_System_ConnectorPack` p ON p.Id = w.PackId WHERE w.WorkId IN %(work_ids)s

-- name: read_work_ids
-- Ids of work items by WorkId. No lock. Missing rows: not retained.
SELECT WorkId, Id FROM `_System_ConnectorWorkItem` WHERE WorkId IN %(work_ids)s

-- name: read_next_replays
-- The replay of each given item: (replayed WorkId, replay's WorkId, replay's id). Index: unique ReplayOfWorkId. No row: not replayed.
SELECT ReplayOfWorkId, WorkId, Id FROM `_System_ConnectorWorkItem` WHERE ReplayOfWorkId IN %(work_ids)s

-- name: read_scopes
-- Nonterminal generations of the source scopes of the given items, of whatever pack, route or companion. No lock. Index: ix_work_scope.
SELECT w.Id FROM `_System_ConnectorWorkItem` d JOIN `_System_ConnectorWorkItem` w
  ON w.SourceScopeKey = d.SourceScopeKey AND w.State IN ('pending', 'blocked', 'processing', 'retry')
WHERE d.Id IN %(ids)s AND d.ExecutionClass = 'projection' AND w.ExecutionClass = 'projection'
