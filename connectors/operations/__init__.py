"""Operations: what an operator does and reads, once for the commands and the console.

A verb writes its audit entry in its own unit and answers with what was done or with a refusal (`projection.refusals`); commands and
buttons only word it. Reads are bounded and lock nothing. Begin reading at `verbs` (work, lanes, destinations, receipts), `bulk_jobs`, or
`trace.trace`. May import everything below: root to routing, and the engine; not retention, nor any command.
"""
