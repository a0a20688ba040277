"""Whose address a request counts under: never one that the client chose."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from connectors.ingress.client_address import client_address, client_network


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("198.51.100.7", None, "198.51.100.7"),
        # A peer that is no proxy of ours says what it likes.
        ("198.51.100.7", "203.0.113.9", "198.51.100.7"),
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        # What the client sent stands in front of what the proxy appended.
        ("127.0.0.1", "192.0.2.1, 127.0.0.1, 203.0.113.9", "203.0.113.9"),
        ("::1", "192.0.2.1,203.0.113.9", "203.0.113.9"),
        # A chain of our own proxies is walked to its end.
        ("127.0.0.1", "203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("127.0.0.1", "10.9.9.9, 10.1.2.3", "10.9.9.9"),
        # Text that is no address ends the walk at the last one that is.
        ("127.0.0.1", "203.0.113.9, unknown", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.9, unknown, 10.1.2.3", "10.1.2.3"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", None, "127.0.0.1"),
        # As Azure and others write it.
        ("127.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("127.0.0.1", "[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::/64"),
        # Whoever has one IPv6 address has its whole network.
        ("2001:db8:1:2::1", None, "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", None, "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.7", None, "198.51.100.7"),
        # gunicorn on a Unix socket: only a proxy of this host can connect.
        ("", "203.0.113.9", "203.0.113.9"),
        ("", None, "unknown"),
    ],
)
def test_the_address(peer: str, forwarded: str | None, expected: str, settings: Any) -> None:
    settings.HEADRACE_TRUSTED_PROXIES = ["127.0.0.1/32", "::1/128", "10.0.0.0/8"]
    headers = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    assert client_address(RequestFactory().get("/", REMOTE_ADDR=peer, **headers)) == expected


@pytest.mark.parametrize(
    ("peer", "expected"),
    [("198.51.100.7", "198.51.100.0/24"), ("2001:db8:1:2::1", "2001:db8:1:2::/64"), ("", "unknown")],
)
def test_a_sender_has_a_network(peer: str, expected: str, settings: Any) -> None:
    settings.HEADRACE_TRUSTED_PROXIES = []
    assert client_network(RequestFactory().get("/", REMOTE_ADDR=peer)) == expected
