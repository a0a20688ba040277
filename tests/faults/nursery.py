"""`python -m tests.faults.nursery`: starts processes that run real commands, and that a test lets die at a point of its choice.

It has loaded the product and has no connection, no thread and no other state; each order is run by a fork of it, a real process with
connections of its own that the kernel kills, stops and continues like any other. So a process costs milliseconds in place of a second.

It reads one JSON object a line: `{"start": order}` answers `{"pid": …}`; `{"wait": pid}` answers, once the process has ended or stands
still, `{"code": …}`, `{"signal": …}` or `{"stopped": true}`. It ends with its standard input, and takes its children with it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django
from django.core.management import execute_from_command_line, get_commands, load_command_class

from tests.faults.orders import Order
from tests.faults.points import watched
from tests.faults.victim import CommitPoints

CRASHED = 70
"""Exit code of a process that ended by an exception of its own."""
COMMANDS = ("audit", "dlq", "erase", "jobs", "prune", "receive", "route_receipts", "run_worker", "spool")


def main() -> None:
    django.setup()
    from tests.faults import flows  # here: it needs Django's apps

    flows.register()
    for name in COMMANDS:
        load_command_class(get_commands()[name], name)
    living: set[int] = set()
    try:
        for line in sys.stdin:
            request = json.loads(line)
            answer = _started(Order.from_json(request["start"]), living) if "start" in request else _ended(request["wait"], living)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _started(order: Order, living: set[int]) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        _live(order)
    living.add(pid)
    return {"pid": pid}


def _ended(pid: int, living: set[int]) -> dict[str, Any]:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"stopped": True}
    living.discard(pid)
    return {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"code": os.WEXITSTATUS(status)}


def _live(order: Order) -> None:
    """The life of a child; does not return."""
    code = CRASHED
    try:
        _own_standard_streams(Path(order.folder))
        _change(order)
        points = CommitPoints(Path(order.folder) / "points", order.at)
        with watched(points.before, points.after):
            code = max([_run(command) for command in order.commands])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _own_standard_streams(folder: Path) -> None:
    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, said), (2, said)):
        os.dup2(source, target)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # for the life of the process


def _change(order: Order) -> None:
    from django.conf import settings

    for name, value in order.settings.items():
        setattr(settings, name, value)
    for path, value in order.constants.items():
        module, _, name = path.rpartition(".")
        setattr(importlib.import_module(module), name, value)


def _run(command: Sequence[str]) -> int:
    try:
        execute_from_command_line(["manage.py", *command])
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:  # noqa: BLE001  # the child has to leave by its own exit, whatever happened
        traceback.print_exc()
        return CRASHED
    return 0


if __name__ == "__main__":
    main()
