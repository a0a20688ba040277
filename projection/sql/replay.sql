-- name: read_work_pack
-- The pack of a work item with its incarnation, whatever its state: a replay without retarget runs under the same one.
SELECT p.Id, p.Incarnation FROM `_System_ConnectorWorkItem` w JOIN `_System_ConnectorPack` p ON p.Id = w.PackId
WHERE w.WorkId = %(work_id)s

-- name: read_scope
-- Nonterminal generations of a source scope, of whatever pack, route or companion. No lock. Index: ix_work_scope.
SELECT Id FROM `_System_ConnectorWorkItem`
WHERE SourceScopeKey = %(scope_key)s AND State IN ('pending', 'blocked', 'processing', 'retry') AND ExecutionClass = 'projection'
ORDER BY Id
