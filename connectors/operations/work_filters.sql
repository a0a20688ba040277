-- name: read_items_of_source
-- Work items in some states whose selected event has a source id. Index: ix_event_source, then ix_work_event. The caller compares the
-- texts again, exactly.
SELECT w.Id, e.SourceType, e.SourceId
FROM `_System_ConnectorEvent` e JOIN `_System_ConnectorWorkItem` w ON w.EventId = e.Id
WHERE e.SourceId IN %(source_ids)s AND w.State IN %(states)s ORDER BY w.Id DESC LIMIT %(limit)s
