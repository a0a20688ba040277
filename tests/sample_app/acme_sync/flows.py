"""One flow of each form: atomic, plain, network first with an atomic tail, atomic in batches."""

import os

import httpx
from django.db.models import F

from acme_sync.models import Batch, Notice, Order, Stock
from projection.flows import Skip, flow


@flow("acme.order", atomic=True)
def order(generation):
    """The row and the end of the work item commit together."""
    row, _ = Order.objects.get_or_create(number=generation.source.id, defaults={"total": "0"})
    row.total = str(generation.selected.data["total"])
    row.folded += len(generation.inputs)
    row.save()
    if generation.selected.data.get("poison"):
        raise ValueError("this order cannot be booked")


@flow("acme.notice", timeout=10)
def notice(generation):
    """At least once: the WorkId makes a second run harmless."""
    kinds = " ".join(each.kind for each in generation.inputs)
    Notice.objects.update_or_create(work_id=generation.work_id, defaults={"text": f"{generation.source.id}: {kinds}"})


@flow("acme.stock", destination="acme-stock")
def stock(generation):
    """Asks the stock service, then writes what it said together with the end of the work item."""
    answer = httpx.post(os.environ["ACME_STOCK_URL"], content=generation.source.id, timeout=5)
    if answer.status_code == 404:
        raise Skip("not a stocked article")
    answer.raise_for_status()
    with generation.commit():
        Stock.objects.get_or_create(number=generation.source.id, defaults={"answer": ""})
        Stock.objects.filter(number=generation.source.id).update(answer=answer.text, commits=F("commits") + 1)


@flow("acme.totals", atomic=True, batch=True)
def totals(generations):
    """Gets every generation of the claimed batch at once."""
    orders = sorted(generation.source.id for generation in generations)
    Batch.objects.create(orders=" ".join(orders), inputs=sum(len(generation.inputs) for generation in generations))
