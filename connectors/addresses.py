"""Which network addresses a flow may connect to: public ones, and those of HEADRACE_FORWARD_ALLOWED_NETWORKS.

Without this, whoever may set a destination (or its DNS) could make Headrace post into its own network: a database, a cloud's metadata
service, this very console.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NAT64: Final = IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a gateway turns into the IPv4 address in their last 32 bits (RFC 6052)."""


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Networks in CIDR form. Raises ValueError."""
    return tuple(ip_network(text) for text in texts)


def is_allowed(text: str, allowed: Sequence[Network]) -> bool:
    """Whether a connection to this IP address may be made. An address inside another one (mapped, 6to4, NAT64) counts too."""
    return all(_is_allowed(address, allowed) for address in _meant(ip_address(text)))


def _meant(address: Address) -> tuple[Address, ...]:
    """The addresses that a packet to `address` may end at."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in NAT64:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    if address.sixtofour is not None:
        return (address, address.sixtofour)
    if address.teredo is not None:
        return (address, *address.teredo)
    return (address,)


def _is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    if any(address in network for network in allowed):
        return True
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
