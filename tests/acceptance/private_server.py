"""A MariaDB of the test's own, run by the product's own start code, that can be killed and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ops_ui.config.database_url import database
from ops_ui.start.database_server import connect
from ops_ui.start.private_database import PrivateDatabase, Use
from tests.support.running import state_folder, wait_until

IS_INSTALLED = all(
    shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") for program in ("mariadbd", "mariadb-install-db")
)

LEAVE_SECONDS = 20.0


class PrivateServer:
    """A durable server; `url` names database `headrace` on it."""

    def __init__(self, database: PrivateDatabase, use: Use) -> None:
        self._database = database
        self._use = use
        self.url = f"mysql://{quote(database.user)}@localhost/headrace?socket={quote(str(database.socket))}"

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements of an administrator; the rows of the last."""
        settings = database(self.url)
        with closing(connect(settings)) as connection, closing(connection.cursor()) as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def ordinary_url(self, user: str) -> str:
        """As `url`, for a user without an administrator's rights: what is read-only is so for them. Made at the first call."""
        self.execute(
            f"CREATE USER IF NOT EXISTS '{user}'@'localhost' IDENTIFIED BY '{user}'",
            f"GRANT ALL ON `headrace%`.* TO '{user}'@'localhost'",
            f"GRANT PROCESS ON *.* TO '{user}'@'localhost'",
        )
        return f"mysql://{user}:{user}@localhost/headrace?socket={quote(str(self._database.socket))}"

    def crash(self) -> None:
        """SIGKILL, as a power cut would; returns once nothing runs any more."""
        os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: not self._use.is_running(), "the killed database has ended")

    def stop(self) -> None:
        """SIGTERM, as a service manager would; returns once it has ended in good order."""
        os.kill(self.pid, signal.SIGTERM)
        wait_until(lambda: not self._use.is_running(), "the stopped database has ended")

    def is_running(self) -> bool:
        return self._database.pid_file.exists() and self._use.is_running()

    @property
    def pid(self) -> int:
        """Of the server that runs."""
        return int(self._database.pid_file.read_text(encoding="ascii"))

    def start(self) -> None:
        """Returns once it answers again, after its recovery."""
        self._use.ensure_running()


@contextmanager
def private_server(data: Path | None = None) -> Iterator[PrivateServer]:
    """`data`: an empty folder for what it stores, for example on a disk that the test fills."""
    with state_folder() as folder:
        database = PrivateDatabase(data or folder / "database", folder, pwd.getpwuid(os.geteuid()).pw_name)
        with Use(database) as use:
            try:
                yield PrivateServer(database, use)
            finally:
                use.leave(LEAVE_SECONDS)
