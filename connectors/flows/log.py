"""Flow `log`: one structured line per generation, to see a route work before anything depends on it."""

from __future__ import annotations

from projection.flows import Generation, flow
from projection.logs import log_event


@flow("log")
def log(generation: Generation) -> None:
    """Write ids and counts of the generation; never a payload, a property or a header."""
    first, last = generation.inputs[0], generation.inputs[-1]
    log_event(
        "generation",
        namespace=generation.namespace,
        pack=generation.route.pack_name,
        route=generation.route.key,
        route_version=generation.route.version,
        work_id=generation.work_id,
        replay_of_work_id=generation.replay_of_work_id,
        event_id=generation.selected.event_id,
        attempt=generation.attempt,
        lane=generation.source_lane or None,
        account=generation.source.account or None,
        source=f"{generation.source.type}:{generation.source.id}",
        sources=len(generation.sources),
        count=len(generation.inputs),
        kind=generation.route.event_kind,
        first_ordinal=first.ordinal,
        last_ordinal=last.ordinal,
        payload_characters=sum(len(each.payload) for each in generation.inputs),
    )
