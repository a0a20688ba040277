"""Where a request comes from, as far as nobody can pretend otherwise."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NETWORK_OF_ONE_CLIENT: Final = 64
"""Bits. Whoever has one IPv6 address has all of its network."""
NETWORK_OF_ONE_SENDER: Final = 24
"""Bits of IPv4."""
UNKNOWN: Final = "unknown"


def client_address(request: HttpRequest) -> str:
    """The client's IPv4 address, or its IPv6 network; `unknown` for a peer without an address whose proxy names none.

    X-Forwarded-For counts only from a peer in HEADRACE_TRUSTED_PROXIES, and from its end: each proxy appends the address that it saw,
    and what stands before the first address that is no trusted proxy's was written by the client.
    """
    hops = [request.META.get("REMOTE_ADDR", ""), *reversed(request.META.get("HTTP_X_FORWARDED_FOR", "").split(","))]
    nearest = UNKNOWN
    for place, hop in enumerate(hops):
        address = _parse(hop)
        if address is not None:
            nearest = _client(address)
            if not _is_trusted(address):
                break
        elif place or hop:  # only a Unix socket's peer has no address
            break
    return nearest


def client_network(request: HttpRequest) -> str:
    """The network of the client's address: one sender has several addresses of it as easily as one."""
    found = _parse(client_address(request).partition("/")[0])
    if found is None:
        return UNKNOWN
    bits = NETWORK_OF_ONE_SENDER if isinstance(found, ipaddress.IPv4Address) else NETWORK_OF_ONE_CLIENT
    return str(ipaddress.ip_network(f"{found}/{bits}", strict=False))


def _parse(text: str) -> Address | None:
    """An address, also with a port or in brackets as some proxies write it; None for anything else."""
    bare = text.strip()
    try:
        found = ipaddress.ip_address(bare)
    except ValueError:
        try:
            found = ipaddress.ip_address(urlsplit(f"//{bare}").hostname or "")
        except ValueError:
            return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def _is_trusted(address: Address) -> bool:
    return any(address in ipaddress.ip_network(network) for network in settings.HEADRACE_TRUSTED_PROXIES)


def _client(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((int(address), NETWORK_OF_ONE_CLIENT), strict=False))
