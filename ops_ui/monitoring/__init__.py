"""Is it alive, is it ready, does it make progress? Probes, metrics, and alerts on transitions.

Bounded reads; an alert and its message are written in one transaction and sent afterwards. Begin at `health.readyz` and
`alerts.look`. May import config; knows nothing of the console.
"""
