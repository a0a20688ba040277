"""gunicorn's own messages as lines of the common form, without what a sender wrote: a malformed header may be a credential."""

from __future__ import annotations

import re
from typing import Any, Final

from gunicorn.glogging import Logger

from projection.runtime.library_log import LibraryLine

_OF_A_SENDER: Final = re.compile(r"(Invalid request from ip=[^ ]*: [^:'\"]*).*", re.DOTALL)
"""gunicorn repeats the line that it could not read; what kind of mistake it was stands in front."""


class WebLog(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Named in `gunicorn_conf.py`."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(LibraryLine(self.error_fmt))

    def warning(self, msg: str, *args: Any, **kwargs: Any) -> None:
        super().warning(_OF_A_SENDER.sub(r"\1", str(msg)).rstrip(), *args, **kwargs)

    def exception(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Of a request that failed: its path, without the query, which may hold a token."""
        super().exception(msg, *(str(value).partition("?")[0] for value in args), **kwargs)
