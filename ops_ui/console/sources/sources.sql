-- Sources of the console: plain reads, no locks.

-- name: read_newest_of_sources
-- Ids of events that are the newest of their source, newest first, within a window of ids: the window's newest event of each source, if that
-- is the source's newest. For each source of the window, not for each event, one step into ix_event_source (more where other sources
-- share its id and sent later). The indexes are forced: with statistics from before a burst MariaDB read the whole table for each row. The
-- order names the text too, because MySQL sorts all events of the source otherwise; and it read the whole table for a NOT EXISTS.
SELECT e.Id FROM (
  SELECT MAX(Id) AS Id FROM `_System_ConnectorEvent` FORCE INDEX (PRIMARY)
  WHERE Id <= %(newest)s AND Id > %(floor)s
    AND (%(namespace)s = '' OR Namespace = %(namespace)s) AND (%(type)s = '' OR SourceType = %(type)s) AND (%(account)s = '' OR Account = %(account)s)
  GROUP BY Namespace, SourceKey) w
JOIN `_System_ConnectorEvent` e FORCE INDEX (PRIMARY) ON e.Id = w.Id
WHERE (%(kind)s = '' OR e.EventKind = %(kind)s)
  AND e.Id = (
    SELECT n.Id FROM `_System_ConnectorEvent` n FORCE INDEX (ix_event_source)
    WHERE n.SourceId = e.SourceId AND n.SourceKey = e.SourceKey AND n.Namespace = e.Namespace
    ORDER BY n.SourceId DESC, n.Id DESC LIMIT 1)
ORDER BY e.Id DESC LIMIT %(limit)s

-- name: read_sources_of_id
-- The newest event of each source that has an id, among the newest events of the id. Index: ix_event_source, backwards.
SELECT MAX(newest.Id) FROM (
  SELECT Id, Namespace, SourceKey FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_source)
  WHERE SourceId = %(source_id)s ORDER BY Id DESC LIMIT %(limit)s) newest
GROUP BY newest.Namespace, newest.SourceKey
