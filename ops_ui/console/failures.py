"""The page for a request that failed: an outage of the database is told as such, everything else as a failure of ours."""

from __future__ import annotations

import sys
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from projection.database import outages
from projection.database.outages import is_outage

RETRY_SECONDS: Final = 10


def failed(request: HttpRequest) -> HttpResponse:
    """503 while the database is away or takes no writes, else 500. Django calls it while it handles the error, and logs one line."""
    error = sys.exc_info()[1]
    if error is None or not is_outage(error):
        return server_error(request)
    # Without the request: who is logged in and what messages wait would be asked of the database.
    response = HttpResponse(render_to_string("503.html", {"read_only": outages.is_read_only(error)}), status=503)
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    response.headers["Cache-Control"] = "no-store"
    return response
