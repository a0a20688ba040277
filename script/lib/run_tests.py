"""Runs every check and the suite; `script/test` calls it after its set-up.

With arguments only pytest runs, with these. `--quick` alone leaves out what takes minutes: it runs the checks, the unit tests and one
delivery from HTTP to its record. `--coverage` alone is the whole run with the floor of branch coverage (not every time: it makes the
suite 20 to 40 % slower). The suite's own database is a MariaDB under `.local/test/`, or the server that
HEADRACE_DATABASE_URL names; pytest makes `test_<name>` on it, afresh each time. Exit code 0 = everything passed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from ops_ui.config.environment import PREFIX, BadSetting  # noqa: E402  # the line above finds it
from ops_ui.start import CannotStart  # noqa: E402  # the line above finds it
from ops_ui.start.database_server import ensure_database  # noqa: E402  # the line above finds it
from ops_ui.start.installation import open_installation  # noqa: E402  # the line above finds it
from ops_ui.start.private_database import Use  # noqa: E402  # the line above finds it
from script.lib.bytecode import keep_bytecode  # noqa: E402 - as above
from script.lib.coverage_floor import MEASURED, figure, shortfall  # noqa: E402 - the line above finds it

BIN: Final = Path(sys.executable).parent
CHECKS: Final = {
    "mypy": ["mypy"],
    "imports": ["lint-imports", "--no-cache"],
    "ruff format": ["ruff", "format", "--check", "."],
    "ruff check": ["ruff", "check", "."],
    "templates": ["djhtml", "--tabwidth", "2", "--check", "templates"],
    "dependencies": ["deptry", "."],
    "migrations": ["python", "manage.py", "makemigrations", "--check", "--dry-run"],
    "django": ["python", "manage.py", "check"],
}
"""The slowest first: as many as there are processors run beside each other."""
WORKERS: Final = 3
"""Processes of the suite, each with a database of its own: one more than processors, as acceptance tests wait for other processes."""
SHARED_OUT: Final = ["-n", str(WORKERS), "--dist", "loadfile", "--no-loadscope-reorder"]
"""A file is one worker's, in the order of `tests/conftest.py`."""
QUICK: Final = "--quick"
LEFT_OUT_OF_QUICK: Final = ("dependencies", "migrations", "django")
QUICK_SUITE: Final = ["tests/unit", "tests/integration/test_one_delivery.py", "-n", "2", "--dist", "loadfile"]
COVERAGE: Final = "--coverage"
STATE: Final = CHECKOUT / ".local" / "test"


def test_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without its Headrace settings, but for the server to test on."""
    kept = {name: value for name, value in environ.items() if not name.startswith(PREFIX) or "DATABASE_URL" in name}
    return kept | {"HEADRACE_STATE_DIR": str(STATE)}


def passes(name: str, command: list[str], environ: Mapping[str, str]) -> bool:
    """Run one check and report the result; its output is shown only when it failed."""
    done = subprocess.run(  # noqa: S603  # the commands above
        [str(BIN / command[0]), *command[1:]],
        cwd=CHECKOUT,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    say(f"{name}: {'passed' if done.returncode == 0 else 'FAILED'}")
    if done.returncode:
        sys.stdout.write(done.stdout + "\n")
        sys.stdout.flush()
    return done.returncode == 0


def failing(names: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Run these checks beside each other; those that failed."""
    with ThreadPoolExecutor(os.cpu_count()) as beside:
        done = {name: beside.submit(passes, name, CHECKS[name], environ) for name in names}
    return [name for name, passed in done.items() if not passed.result()]


def keeps_its_floor(report: Path) -> bool:
    """Say the branch figure of a run, and what it lacks."""
    found = json.loads(report.read_text(encoding="utf-8"))
    lacking = shortfall(found)
    for line in lacking or [f"branch coverage of {MEASURED}/: {figure(found)}"]:
        say(line)
    return not lacking


def run(arguments: list[str]) -> int:
    keep_bytecode(os.environ)
    measured, quick = arguments == [COVERAGE], arguments == [QUICK]
    given = [] if measured or quick else arguments
    with ExitStack() as held:
        installation = open_installation(test_environment(os.environ), durable=False)
        if installation.private is not None:
            held.enter_context(Use(installation.private))
        environ = dict(installation.environ)
        ensure_database_of(environ)
        checks = [] if given else [name for name in CHECKS if not (quick and name in LEFT_OUT_OF_QUICK)]
        failed = failing(checks, environ)
        if not quick:
            passes("static files", ["python", "manage.py", "collectstatic", "--no-input", "--verbosity", "0"], environ)
        suite = ["pytest", "--create-db", *(QUICK_SUITE if quick else given or SHARED_OUT)]
        report = STATE / "coverage.json"
        if measured:
            STATE.mkdir(parents=True, exist_ok=True)
            environ["COVERAGE_FILE"] = str(STATE / "coverage")
            suite += [f"--cov={MEASURED}", "--cov-branch", "--cov-report=", f"--cov-report=json:{report}"]
        code = subprocess.run([str(BIN / suite[0]), *suite[1:]], cwd=CHECKOUT, env=environ, check=False).returncode  # noqa: S603  # its own command
    if measured and not code:
        code = int(not keeps_its_floor(report))
    if failed:
        say(f"{len(checks) - len(failed)} checks passed, {len(failed)} failed: {', '.join(failed)}")
    return code or int(bool(failed))


def ensure_database_of(environ: Mapping[str, str]) -> None:
    from ops_ui.config.database_url import database
    from ops_ui.config.environment import read

    ensure_database(database(read(environ)["DATABASE_URL"]))


def say(line: str) -> None:
    sys.stdout.write(f"script/test: {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except (BadSetting, CannotStart) as error:
        sys.exit(f"script/test: {error}")
