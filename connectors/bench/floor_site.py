"""The floor of `bench ingress`: a bare Django view that does one durable INSERT of the body. A WSGI application for gunicorn.

No signature, no endpoint, no duplicates, no limits, no log, no middleware; table `bench_floor` has a primary key and the body. Settings
and server are those of the service. Imported by gunicorn alone: it turns the settings of its process into those of this site.
"""

from __future__ import annotations

from typing import Final

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import re_path

TABLE: Final = "bench_floor"


def take(request: HttpRequest) -> HttpResponse:
    """Autocommit: the row is committed when the statement returns."""
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {TABLE} (Body) VALUES (%s)", [request.body])
        answer = b'{"receipt": "%d"}' % cursor.lastrowid
    return HttpResponse(answer, status=202, headers={"Content-Type": "application/json", "Content-Length": str(len(answer))})


urlpatterns = [re_path("", take)]

django.setup()
settings.ROOT_URLCONF = __name__
settings.MIDDLEWARE = []
application = WSGIHandler()
