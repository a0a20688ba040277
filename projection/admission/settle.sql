-- name: read_settle_deadlines
-- Earliest deadline still in the future per (pack, route, source) among at most 256 requested keys; no lock. {scopes} is an OR of
-- `(PackId = … AND RouteId = … AND SourceKey IN (…) AND NextAttemptAt > …)`. Index: ix_event_settle (not forced). MIN keeps the column's
-- own precision. No row for a key: no burst is open.
SELECT PackId, RouteId, SourceKey, MIN(NextAttemptAt) FROM `_System_ConnectorEvent` WHERE {scopes}
GROUP BY PackId, RouteId, SourceKey
