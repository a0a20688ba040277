-- What the overview draws: plain reads, no locks, each of at most a few thousand index entries for one part of a period. Sent for all
-- parts at once (`fetch_each`): (place of the part, rows, time of the last row that was read). Those `…_from_its_end` read a part
-- that has more rows than are counted once more, from its end: the last row that was read is the earliest.

-- name: read_part_of_receipts
-- Deliveries of one state. Index only: ix_receipt_state.
(SELECT %s AS Part, COUNT(*), MAX(x.At) FROM (
  SELECT ReceivedAt AS At FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_state)
  WHERE State = %s AND ReceivedAt > %s AND ReceivedAt <= %s ORDER BY State, ReceivedAt, Id LIMIT %s) x)

-- name: read_part_of_receipts_from_its_end
-- Backwards on the same index.
(SELECT %s AS Part, COUNT(*), MIN(x.At) FROM (
  SELECT ReceivedAt AS At FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_state)
  WHERE State = %s AND ReceivedAt > %s AND ReceivedAt <= %s ORDER BY State DESC, ReceivedAt DESC, Id DESC LIMIT %s) x)

-- name: read_part_of_unrouted_receipts
-- Deliveries of all other states. Index only: ix_receipt_state, one range for each state.
(SELECT %s AS Part, COUNT(*), NULL FROM (
  SELECT Id FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_state)
  WHERE State IN ('pending', 'rejected', 'quarantined', 'conflict') AND ReceivedAt > %s AND ReceivedAt <= %s LIMIT %s) x)

-- name: read_part_of_events
-- (part, receipts, events in them) of routed deliveries: events have no index by time. Reads the rows of so many receipts.
-- Index: ix_receipt_state.
(SELECT %s AS Part, COUNT(*), SUM(x.Events) FROM (
  SELECT COALESCE(EventCount, 0) AS Events FROM `_System_ConnectorReceipt` FORCE INDEX (ix_receipt_state)
  WHERE State IN ('routed', 'partial') AND ReceivedAt > %s AND ReceivedAt <= %s LIMIT %s) x)

-- name: read_part_of_ends
-- Work that ended in one state. Index only: ix_work_terminal.
(SELECT %s AS Part, COUNT(*), MAX(x.At) FROM (
  SELECT TerminalAt AS At FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = %s AND TerminalAt > %s AND TerminalAt <= %s ORDER BY State, TerminalAt, Id LIMIT %s) x)

-- name: read_part_of_ends_from_its_end
-- Backwards on the same index.
(SELECT %s AS Part, COUNT(*), MIN(x.At) FROM (
  SELECT TerminalAt AS At FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = %s AND TerminalAt > %s AND TerminalAt <= %s ORDER BY State DESC, TerminalAt DESC, Id DESC LIMIT %s) x)

-- name: read_part_of_failures
-- Failed attempts. Index only: ix_failure_created.
(SELECT %s AS Part, COUNT(*), MAX(x.At) FROM (
  SELECT CreatedDate AS At FROM `_System_ConnectorWorkFailure` FORCE INDEX (ix_failure_created)
  WHERE CreatedDate > %s AND CreatedDate <= %s ORDER BY CreatedDate LIMIT %s) x)

-- name: read_part_of_failures_from_its_end
-- Backwards on the same index.
(SELECT %s AS Part, COUNT(*), MIN(x.At) FROM (
  SELECT CreatedDate AS At FROM `_System_ConnectorWorkFailure` FORCE INDEX (ix_failure_created)
  WHERE CreatedDate > %s AND CreatedDate <= %s ORDER BY CreatedDate DESC LIMIT %s) x)

-- name: read_newest_ended
-- The newest generations that ended in one state: (id, when). Replays are left out: they take the inputs of another one.
-- Index: ix_work_terminal, backwards.
(SELECT x.Id, x.TerminalAt FROM (
  SELECT Id, TerminalAt, ProjectionKey, ReplayOfWorkId FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = %s ORDER BY State DESC, TerminalAt DESC, Id DESC LIMIT %s) x
WHERE x.ProjectionKey IS NOT NULL AND x.ReplayOfWorkId IS NULL)

-- name: read_part_of_inputs
-- (work item, events in its range, counted up to a limit). Index: ix_event_range.
(SELECT %s AS Item, COUNT(*) FROM (
  SELECT Id FROM `_System_ConnectorEvent` FORCE INDEX (ix_event_range)
  WHERE ProjectionKey = %s AND EnqueueOrdinal > %s AND EnqueueOrdinal <= %s AND ReplayOfEventId IS NULL LIMIT %s) x)

-- name: read_longest_blocked
-- Lanes whose items have been blocked for longest: (lane key, its item of the lowest id, how many), among the items of the lowest ids.
-- Index: ix_work_terminal.
SELECT x.LaneKey, MIN(x.Id), COUNT(*) FROM (
  SELECT Id, LaneKey FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_terminal)
  WHERE State = 'blocked' AND TerminalAt IS NULL ORDER BY State, TerminalAt, Id LIMIT %(looked_at)s) x
WHERE x.LaneKey IS NOT NULL GROUP BY x.LaneKey ORDER BY MIN(x.Id) LIMIT %(limit)s
