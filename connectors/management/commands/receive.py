"""`receive ENDPOINT FILE…`: store deliveries from files as HTTP would, without a signature (the operator is trusted)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from django.core.management.base import CommandError, CommandParser

from connectors.configuration.change import DEFAULT_NAMESPACE
from connectors.delivery import IngressRequest, Outcome
from connectors.ingress import endpoint_facts
from connectors.ingress.body import too_large
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.store import store_durably
from connectors.operations.delivery_files import BadLine, Delivery, deliveries
from projection.cli import DONE, FINDINGS, HeadraceCommand, refusal

STDIN: Final = "-"


class Command(HeadraceCommand):
    help = "Stores deliveries from files (JSON Lines) as if they had arrived by HTTP."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("endpoint", metavar="ENDPOINT", help="slug, or namespace/slug")
        parser.add_argument(
            "files",
            metavar="FILE",
            nargs="*",
            default=[STDIN],
            help='JSON Lines: one body per line, or {"headers": …, "body": …}; - or no file reads standard input',
        )

    def perform(self, **options: Any) -> int:
        name, files = options["endpoint"], options["files"]
        endpoint = _endpoint(name)
        if endpoint is None:
            reason = f"there is no endpoint {name!r}; `endpoints list` shows the existing ones"
            self.emit({"refused": [refusal(name, "not_found", reason)]}, [reason])
            return FINDINGS
        _require_readable(files)
        tally = Tally()
        for file in files:
            with _opened(file) as stream:
                for found in deliveries(stream):
                    tally.add(f"{file}:{found.line}", found, endpoint)
        self.emit(asdict(tally) | {"received": len(tally.receipts)}, tally.lines())
        return FINDINGS if tally.refused else DONE


@dataclass(slots=True)
class Tally:
    """What became of the lines so far."""

    receipts: list[str] = field(default_factory=list)
    duplicates: int = 0
    refused: list[dict[str, str]] = field(default_factory=list)

    def add(self, place: str, found: Delivery | BadLine, endpoint: EndpointFacts) -> None:
        """Store one line's delivery and count its outcome; `place` is file and line."""
        if isinstance(found, BadLine):
            self.refused.append(refusal(place, "bad_line", found.reason))
            return
        outcome = _stored(endpoint, found)
        if outcome.code == "accepted":
            self.receipts.append(str(outcome.receipt_id))
        elif outcome.code == "duplicate":
            self.duplicates += 1
        else:
            self.refused.append(refusal(place, outcome.code, outcome.message))

    def lines(self) -> list[str]:
        counts = f"{len(self.receipts)} received, {self.duplicates} duplicates, {len(self.refused)} refused"
        return [counts, *(f"{one['id']}: {one['reason']}" for one in self.refused)]


def _endpoint(name: str) -> EndpointFacts | None:
    namespace, slash, slug = name.partition("/")
    facts = endpoint_facts.load((namespace, slug) if slash else (DEFAULT_NAMESPACE, name))
    if facts is not None and facts.availability != "open":
        raise CommandError(f"endpoint {name!r} is {facts.availability}; enable it and its pack, then try again")
    return facts


def _stored(endpoint: EndpointFacts, found: Delivery) -> Outcome:
    if len(found.body) > endpoint.max_body_bytes:
        return too_large(endpoint.max_body_bytes)
    return store_durably(endpoint, IngressRequest("POST", endpoint.url, found.headers, found.body))


def _require_readable(files: list[str]) -> None:
    """Raises CommandError before anything is stored when a file is not there."""
    for name in files:
        if name != STDIN and not Path(name).is_file():
            raise CommandError(f"{name} is not a file; give files of JSON Lines, or - for standard input")


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == STDIN:
        yield sys.stdin.buffer
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115  # closed by the with statement below
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from None
    with stream:
        yield stream
