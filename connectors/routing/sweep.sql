-- Statements of the sweep: unrouted events that a route in force now takes.

-- name: read_unrouted_events
-- Unrouted facts of an id range, oldest first. No lock. Index: primary key.
SELECT Id FROM `_System_ConnectorEvent`
WHERE Id > %(after)s AND Id <= %(through)s AND RouteId IS NULL AND Namespace = %(namespace)s ORDER BY Id

-- name: read_payload_lengths
-- Size of the payloads of facts that are about to be copied. No lock.
SELECT Id, LENGTH(Payload) FROM `_System_ConnectorEvent` WHERE Id IN %(ids)s ORDER BY Id
