"""The product's WSGI application in a web worker that dies at a commit point of a request that says so (`X-Fault: 1 before`).

The commit points are those of the request's own thread, counted from 1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from ops_ui.wsgi import application as product
from tests.faults.orders import KILL
from tests.faults.points import Place, watched
from tests.faults.victim import to_itself

HEADER = "HTTP_X_FAULT"


class Armed(threading.local):
    """What the thread's request asked for, and how many commit points it has come to."""

    number = 0
    side = ""
    passed = 0


armed = Armed()


def before(place: Place) -> None:
    if place.durable is not None:
        armed.passed += 1
        _meet("before")


def after(place: Place) -> None:
    if place.durable is not None:
        _meet("after")


def _meet(side: str) -> None:
    if (armed.number, armed.side) == (armed.passed, side):
        to_itself(KILL)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    number, _, armed.side = environ.get(HEADER, "0 ").partition(" ")
    armed.number, armed.passed = int(number), 0
    return product(environ, start_response)


_watch = watched(before, after)
_watch.__enter__()  # for the life of the worker
