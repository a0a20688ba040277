-- Look-ups of trace: rows that a text names. Plain reads, no locks. Their indexes are forced: to give the newest first, MariaDB and MySQL
-- went through a whole table by id, in the hope of meeting such rows soon. They are in the order of Id alone, because MariaDB sorts by
-- anything that names a text column.

-- name: read_newest_ids
-- The newest rows with one value in an indexed column: {table}, {index}, {column}.
SELECT Id FROM {table} FORCE INDEX ({index}) WHERE {column} = %(value)s ORDER BY Id DESC LIMIT %(limit)s

-- name: read_events_of_id
-- A page of the events with a readable source id, below an id, newest first: which source, namespace and account each is of.
SELECT Id, SourceKey, Namespace, Account FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_source)
WHERE SourceId = %(source_id)s AND Id < %(below)s ORDER BY Id DESC LIMIT %(limit)s
