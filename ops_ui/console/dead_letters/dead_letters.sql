-- Reads of dead letters for the console. None locks.

-- name: read_deaths_by_error
-- Deaths by error fingerprint and part of a period: (fingerprint, number of the part, deaths, newest of them), the largest first. Looks at
-- so many of the newest deaths since the period's beginning: a range of ix_work_terminal, then their rows. Routes and packs may be
-- chosen. So many cells bound the answer where nearly every death has an error of its own.
SELECT d.ErrorFingerprint, FLOOR(TIMESTAMPDIFF(SECOND, %(since)s, d.TerminalAt) / %(width)s) AS Part, COUNT(*) AS Deaths, MAX(d.Id)
FROM (
  SELECT w.Id, w.ErrorFingerprint, w.TerminalAt, w.RouteId, w.PackId FROM `_System_ConnectorWorkItem` w FORCE INDEX (ix_work_terminal)
  WHERE w.State = 'dead' AND w.TerminalAt >= %(since)s ORDER BY w.TerminalAt DESC, w.Id DESC LIMIT %(most)s) d
WHERE (%(all_routes)s OR d.RouteId IN %(routes)s) AND (%(all_packs)s OR d.PackId IN %(packs)s)
GROUP BY d.ErrorFingerprint, Part ORDER BY Deaths DESC, Part DESC, d.ErrorFingerprint LIMIT %(cells)s
