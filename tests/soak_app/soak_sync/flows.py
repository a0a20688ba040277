"""One flow of each form. What each writes is its account, and nothing makes a repetition harmless."""

import os

from projection.flows import flow
from soak_sync.models import Applied


def account(generations):
    rows = [
        Applied(
            route=one.route.key, work_id=one.work_id, attempt=one.attempt, source=one.source.id,
            fact=str(fact(each.data)), ordinal=each.ordinal,
        )
        for one in generations
        for each in one.inputs
    ]  # fmt: skip
    Applied.objects.bulk_create(rows)


def fact(payload):
    """The sender's number of it, whatever Headrace makes of it."""
    return payload["eventId"] if "eventId" in payload else payload["n"]


@flow("soak.atomic", atomic=True)
def atomic(generation):
    account([generation])


@flow("soak.batch", atomic=True, batch=True)
def batch(generations):
    account(generations)


@flow("soak.tail")
def tail(generation):
    with generation.commit():
        account([generation])


@flow("soak.plain")
def plain(generation):
    account([generation])


@flow("soak.poison")
def poison(generation):
    os._exit(137)
