"""Memory: a router and a worker process over many items, with real flows; what each holds after the first 10,000 and in the end.

Of twenty items ten are generations of two events (`record_table`), nine are logged and one is posted to a web server. Items come in
chunks while the worker drains. Every 10,000 items both processes are idle for a moment and are measured: only the like is compared.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from connectors.bench.processes import Process, Site, database_url, site
from connectors.bench.receiver import Receiver, receiving
from connectors.bench.sc400 import BASE
from connectors.bench.workbench import BenchFailed, own_database, server
from connectors.configuration.apply import apply
from connectors.configuration.file import parse
from connectors.delivery import Headers, IngressRequest
from connectors.ingress import endpoint_facts
from connectors.ingress.store import store_within
from connectors.models import Receipt, Record
from projection.models import Event, Worker, WorkItem

FIRST_ITEMS: Final = 10_000
"""What a process is to have seen before its memory counts as grown: caches are full, pools are warm."""
ITEMS_A_RECEIPT: Final = 60
"""Of 90 events; HubSpot's largest array has 100."""
CHUNK_ITEMS: Final = 3_000
"""A whole batch of the router (50 receipts), so that the first step meets the largest admission already. The next chunk is stored
once a worker has begun with the one before: it always has work, and there is no backlog that slows the database down."""
PERIOD: Final = 20
"""Items after which the mix begins again."""
TOLERANCE_MIB: Final = 4.0
"""Of growth that still counts as flat: less than 50 bytes for each of 90,000 items, so nothing that is kept for every item fits."""
LARGEST_MIB: Final = 200.0
STALL_SECONDS: Final = 300.0
CONFIGURATION: Final = """
namespace = "bench"
[packs.hubspot.endpoint.bench]
secrets = ["plain:{secret}"]
[connections.bench]
url = "{url}"
secret = "plain:whsec_YmVuY2gtYmVuY2gtYmVuY2gtYmVuY2g="
[routes.contact]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "projection"
flow = "record_table"
[routes.action]
pack = "hubspot"
on = ["deal.*"]
kind = "deal.action"
mode = "per_event"
flow = "log"
[routes.forward]
pack = "hubspot"
on = ["company.*"]
kind = "company.forwarded"
mode = "per_event"
flow = "http_forward"
connection = "bench"
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process holds and held at most, by the kernel's count, in MiB."""

    now: float
    most: float

    @classmethod
    def of(cls, pid: int) -> Memory:
        lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines())
        kib = {words[0]: int(words[1]) for words in lines if words and words[0] in ("VmRSS:", "VmHWM:")}
        return cls(kib["VmRSS:"] / 1024, kib["VmHWM:"] / 1024)


def run(items: int, *, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Run `items` work items; MiB of both processes, every 10,000 items (at most half of them) under `runs`. Raises BenchFailed.

    `start` is the floor: the process that has loaded everything and done nothing. `flat`: neither grew by more than TOLERANCE_MIB
    after the first step; `small`: neither ever held LARGEST_MIB.
    """
    first = min(FIRST_ITEMS, items // 2)
    with own_database() as name, receiving() as receiver:
        apply(parse(CONFIGURATION.format(secret=secrets.token_hex(32), url=receiver.url)), actor="bench")
        workload, started = _items(), perf_counter()
        with _processes(name) as (made, processes):
            runs = [_measured(0, processes)]
            while runs[-1]["items"] < items:
                done = min(items, runs[-1]["items"] + first)
                _feed(made, workload, runs[-1]["items"], done)
                runs.append(_measured(done, processes))
                say(f"{done} items: router {runs[-1]['router_mib']:.1f} MiB, worker {runs[-1]['worker_mib']:.1f} MiB")
            seconds = perf_counter() - started
        _check(items, receiver)
        facts = {"database": server(), "items": items, "first_items": runs[1]["items"], "items_per_s": items / seconds}
    return facts | summary(runs) | {"runs": runs}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of both processes out of the measurements: before the first item, after the first step, …, in the end."""
    answer: dict[str, Any] = {}
    for kind in ("router", "worker"):
        start, first, end = (runs[place][f"{kind}_mib"] for place in (0, 1, -1))
        most = runs[-1][f"{kind}_most_mib"]
        answer |= {
            f"{kind}_start_mib": start,
            f"{kind}_first_mib": first,
            f"{kind}_end_mib": end,
            f"{kind}_growth_mib": end - first,
            f"{kind}_max_mib": most,
        }
    kinds = ("router", "worker")
    answer["flat"] = all(answer[f"{kind}_growth_mib"] <= TOLERANCE_MIB for kind in kinds)
    answer["small"] = all(answer[f"{kind}_max_mib"] < LARGEST_MIB for kind in kinds)
    return answer


@contextmanager
def _processes(name: str) -> Iterator[tuple[Site, dict[str, Process]]]:
    """The commands `route_receipts` and `run_worker` as processes, once both have begun."""
    with ExitStack() as held:
        made = held.enter_context(site(database_url(name)))
        commands = {"router": "route_receipts", "worker": "run_worker"}
        processes = {kind: made.start(kind, "manage.py", command) for kind, command in commands.items()}
        made.until(lambda: Worker.objects.count() == len(processes), "router and worker have begun")
        yield made, processes


def _measured(items: int, processes: dict[str, Process]) -> dict[str, Any]:
    found: dict[str, Any] = {"items": items}
    for kind, process in processes.items():
        memory = Memory.of(process.pid)
        found |= {f"{kind}_mib": memory.now, f"{kind}_most_mib": memory.most}
    return found


def _feed(made: Site, items: Iterator[list[dict[str, Any]]], at: int, end: int) -> None:
    """Store the events of items `at` to `end` in chunks, never far ahead of the worker; returns when all of them are processed."""
    for begin in range(at, end, CHUNK_ITEMS):
        _await(made, begin - CHUNK_ITEMS + 1)
        _store(islice(items, min(CHUNK_ITEMS, end - begin)))
    _await(made, end)


def _await(made: Site, items: int) -> None:
    made.until(lambda: _processed() >= items, f"{items} items are processed", STALL_SECONDS)


def _processed() -> int:
    return WorkItem.objects.filter(state="processed").count()


def _store(items: Iterable[list[dict[str, Any]]]) -> None:
    """As HubSpot would send them; the events of an item stand in one receipt, so that they are admitted together."""
    facts = endpoint_facts.load(("bench", "bench"))
    if facts is None:
        raise BenchFailed("the endpoint of the workload is gone")
    for several in _batched(items, ITEMS_A_RECEIPT):
        body = json.dumps([event for item in several for event in item]).encode()
        store_within(facts, IngressRequest("POST", "", Headers({"content-type": "application/json"}), body))


def _batched(items: Iterable[list[dict[str, Any]]], size: int) -> Iterator[list[list[dict[str, Any]]]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _items() -> Iterator[list[dict[str, Any]]]:
    """The events of one item after the other, without end."""
    for number in count():
        place = number % PERIOD
        if place % 2 == 0:
            yield [_event(number, "contact.propertyChange", turn) for turn in range(2)]
        else:
            yield [_event(number, "company.creation" if place == PERIOD - 1 else "deal.creation", 0)]


def _event(number: int, kind: str, turn: int) -> dict[str, Any]:
    return {
        **BASE,
        "eventId": 10 * number + turn,
        "subscriptionId": 1,
        "subscriptionType": kind,
        "objectId": number + 1,
        "propertyName": f"property_{turn}",
        "propertyValue": f"value {turn} of {number}",
    }


def _check(items: int, receiver: Receiver) -> None:
    """Every event, item, record and request, once. Raises BenchFailed."""
    generations = -(-items // 2)
    figures = {
        "events": (Event.objects.count(), items + generations),
        "work items": (WorkItem.objects.count(), items),
        "work items processed": (_processed(), items),
        "first attempts": (WorkItem.objects.filter(attempts=1).count(), items),
        "records": (Record.objects.count(), generations),
        "requests": (receiver.moments.qsize(), items // PERIOD),
        "receipts left": (Receipt.objects.exclude(state="routed").count(), 0),
    }
    for what, (found, wanted) in figures.items():
        if found != wanted:
            raise BenchFailed(f"{what}: {found} instead of {wanted}")
