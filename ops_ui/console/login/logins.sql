-- Statements of the console's login. Counts are kept by the database, so that all web processes of all hosts share them.

-- name: count_login_attempt
-- Counts one attempt, before its password is looked at, for its address, for the two together and for its name; a count whose time is
-- over starts anew. Locks the three rows in the order of their unique key (ux_login_failures). Failures is assigned first, because
-- MySQL reads an assigned column's new value in later assignments.
INSERT INTO `headrace_login_failures` (Scope, Username, Address, Failures, ExpiresAt) VALUES
  ('address', '', %(address)s, 1, UTC_TIMESTAMP(6) + INTERVAL %(seconds)s SECOND),
  ('both', %(username)s, %(address)s, 1, UTC_TIMESTAMP(6) + INTERVAL %(seconds)s SECOND),
  ('name', %(username)s, '', 1, UTC_TIMESTAMP(6) + INTERVAL %(seconds)s SECOND)
ON DUPLICATE KEY UPDATE
  Failures = CASE WHEN ExpiresAt <= UTC_TIMESTAMP(6) THEN 1 ELSE Failures + 1 END,
  ExpiresAt = CASE WHEN ExpiresAt <= UTC_TIMESTAMP(6) THEN UTC_TIMESTAMP(6) + INTERVAL %(seconds)s SECOND ELSE ExpiresAt END

-- name: read_login_counts
-- Scope, count and microseconds left of the three rows that `count_login_attempt` locked just before. Index: ux_login_failures.
SELECT Scope, Failures, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), ExpiresAt) FROM `headrace_login_failures`
WHERE (Scope = 'address' AND Username = '' AND Address = %(address)s)
   OR (Scope = 'both' AND Username = %(username)s AND Address = %(address)s)
   OR (Scope = 'name' AND Username = %(username)s AND Address = '')

-- name: forgive_login
-- The password was right: takes this attempt back, and all of the name's earlier ones from this address. Locks as `count_login_attempt`.
-- 0 rows: an operator has unlocked it meanwhile.
UPDATE `headrace_login_failures` SET Failures = CASE WHEN Scope = 'both' OR Failures < 1 THEN 0 ELSE Failures - 1 END
WHERE (Scope = 'address' AND Username = '' AND Address = %(address)s)
   OR (Scope = 'both' AND Username = %(username)s AND Address = %(address)s)
   OR (Scope = 'name' AND Username = %(username)s AND Address = '')

-- name: prune_login_failures
-- Removes counts whose time is over, a bounded number. 0 rows: there is none. Index: ux_login_failures_expiry.
DELETE FROM `headrace_login_failures` WHERE ExpiresAt <= UTC_TIMESTAMP(6) ORDER BY ExpiresAt LIMIT %(most)s
