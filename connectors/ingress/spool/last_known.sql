-- name: read_open_endpoints
-- Enabled endpoints of installed packs, with the columns of `find_endpoint`, a bounded number. No lock. Reads both tables (a few rows).
SELECT e.Id, e.Namespace, e.Slug, e.PublicUrl, e.Secrets, e.UnverifiedPolicy, NULL, e.Limits, e.State, e.DiscardWhenDisabled,
       p.Id, p.Name, p.Incarnation, p.State, p.DiscardWhenDisabled, p.Settings, p.Class, e.Account, e.SignatureScheme
FROM `_System_ConnectorEndpoint` e
JOIN `_System_ConnectorPack` p ON p.Id = e.PackId
WHERE e.State = 'enabled' AND p.State = 'installed'
ORDER BY e.Id LIMIT %(most)s
