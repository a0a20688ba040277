-- What an operator does to rows that no step of the data changes in the same way.

-- name: release_quarantined
-- An operator's re-route. 0 rows: the receipt is not quarantined.
UPDATE `_System_ConnectorReceipt` SET State = 'pending', Attempts = 0, NextAttemptAt = NULL WHERE Id = %(id)s AND State = 'quarantined'
