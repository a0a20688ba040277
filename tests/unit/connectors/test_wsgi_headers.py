"""The headers of a request, read out of the WSGI environment: the same as Django reads, by any spelling."""

from __future__ import annotations

from io import BytesIO

import pytest
from django.core.handlers.wsgi import WSGIRequest

from connectors.delivery import Headers, WsgiHeaders

ENVIRON = {
    "REQUEST_METHOD": "POST",
    "PATH_INFO": "/ingress/default/code",
    "SERVER_NAME": "HTTP_LIKE",
    "SERVER_PORT": "80",
    "CONTENT_TYPE": "application/json",
    "CONTENT_LENGTH": "2",
    "CONTENT_ENCODING": "is no header here",
    "HTTP_HOST": "hooks.example.com",
    "HTTP_X_GITHUB_DELIVERY": "d-1",
    "HTTP_X_EMPTY": "",
    "HTTP_HTTP_HEADER": "named like its prefix",
    "wsgi.input": BytesIO(b"{}"),
    "wsgi.url_scheme": "http",
}


def test_they_are_those_that_django_reads() -> None:
    of_django = {name.lower(): value for name, value in WSGIRequest(ENVIRON).headers.items()}
    assert dict(WsgiHeaders(ENVIRON)) == dict(Headers(of_django)) == of_django
    assert len(WsgiHeaders(ENVIRON)) == len(of_django) == 6


@pytest.mark.parametrize("name", ["x-github-delivery", "X-GitHub-Delivery", "X-GITHUB-DELIVERY"])
def test_a_name_is_found_in_any_case(name: str) -> None:
    headers = WsgiHeaders(ENVIRON)
    assert (headers[name], headers.get(name), name in headers, headers.count(name)) == ("d-1", "d-1", True, 1)
    assert headers.only([name, "x-absent"]) == {"x-github-delivery": "d-1"}


@pytest.mark.parametrize("name", ["x-absent", "content-encoding", "path-info", "server-name", "wsgi.input", ""])
def test_what_was_not_sent_is_absent(name: str) -> None:
    headers = WsgiHeaders(ENVIRON)
    assert (headers.get(name), name in headers, headers.count(name)) == (None, False, 0)
    with pytest.raises(KeyError):
        headers[name]


def test_an_empty_header_was_sent() -> None:
    headers = WsgiHeaders(ENVIRON)
    assert (headers["x-empty"], headers.only(["x-empty"]), headers.count("x-empty")) == ("", {"x-empty": ""}, 1)


def test_no_value_shows_in_a_log() -> None:
    assert "d-1" not in repr(WsgiHeaders(ENVIRON))
    assert "x-github-delivery" in repr(WsgiHeaders(ENVIRON))


def test_headers_that_were_collected_know_how_often_each_came() -> None:
    twice = Headers([("X-A", "1"), ("x-a", "2"), ("X-B", "3")])
    assert (dict(twice), twice.count("X-a"), twice.count("x-b"), twice.count("x-c")) == ({"x-a": "2", "x-b": "3"}, 2, 1, 0)
    once = Headers({"X-A": "1"})
    assert (once.count("x-A"), once.count("x-b"), "X-a" in once, 1 in once) == (1, 0, True, False)
