"""gunicorn: the web server of ingress and console. The supervisor hands over the bound socket."""

from pathlib import Path
from typing import Any

from ops_ui.config import environment
from ops_ui.config.environment import WEB_PROCESSES
from ops_ui.monitoring import counter_files

_settings = environment.read()

# Where to listen when nobody hands over a bound socket (the supervisor does by --bind, systemd by LISTEN_FDS).
bind = str(_settings["BIND"])
# Whose X-Forwarded-Proto says that the client came by https; the throttle of the login believes the same (`client_address.py`).
forwarded_allow_ips = ",".join(_settings["TRUSTED_PROXIES"])

# Threads because a request mostly waits for the database.
workers = WEB_PROCESSES
worker_class = "gthread"
threads = 8
# Requests that wait for a thread, for each process; further ones wait in the queue of the socket.
worker_connections = 1000
# Seconds. A worker that does not even tick for this long is stuck; a request may take longer.
timeout = 60
# Seconds for requests in flight at a stop; the supervisor waits a little longer.
graceful_timeout = 20
# Seconds. Longer than the 60 s of the usual proxy in front, so that the proxy is the one that closes an idle connection.
keepalive = 75
# The heartbeat file of a worker must not wait for a busy disk.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  # gunicorn makes an anonymous file there
# Its control socket has one path per user, for all gunicorns of the host.
control_socket_disable = True
# The supervisor says what starts and stops; gunicorn says what goes wrong.
loglevel = "warning"
logger_class = "ops_ui.config.web_log.WebLog"


def post_worker_init(worker: Any) -> None:
    """Let each worker look after the spool and the alerts: the one that comes first drains, and tells."""
    del worker
    from connectors.ingress.spool import keeper  # here: Django's apps are loaded by now
    from ops_ui import watch

    keeper.start()
    watch.start()


def child_exit(server: Any, worker: Any) -> None:
    """Keep what a worker that ended has counted, in one file with others."""
    del server, worker
    where = counter_files.folder()
    if where is not None:
        counter_files.add_up_ended(where)
