-- name: count_backlog
-- Of the first so many waiting items of each state how many belong to a scope, and since when the oldest of them waits; and how many
-- were looked at. {branches} has one backlog_of_state for each state.
SELECT SUM(found), MIN(oldest), MAX(looked_at) FROM ({branches}) states

-- name: backlog_of_state
-- A branch of count_backlog, for the scope's {column}. One range of the forced ix_work_claim.
SELECT SUM(CASE WHEN w.{column} IN %s THEN 1 ELSE 0 END) AS found, MIN(CASE WHEN w.{column} IN %s THEN w.CreatedDate END) AS oldest,
  COUNT(*) AS looked_at
FROM (SELECT {column}, CreatedDate FROM `_System_ConnectorWorkItem` FORCE INDEX (ix_work_claim) WHERE State = %s LIMIT %s) w
