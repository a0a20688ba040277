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

ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
"""Bits 64 to 96 of an IPv6 address that a host turns into the IPv4 address in its last 32 bits (RFC 5214)."""
NEVER_PUBLIC: Final = (
    IPv4Network("168.63.129.16/32"),  # Azure's own services, on every host
    IPv4Network("192.0.0.0/24"),  # protocol assignments
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("fec0::/10"),  # site-local
)
"""What some version of Python takes for global, or a cloud uses inside."""


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
    inside = [address.sixtofour, *(address.teredo or ())]
    if int(address) >> 32 & 0xFFFF_FFFF in ISATAP:
        inside.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return (address, *(one for one in inside if one is not None))


def _is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    if any(address in network for network in allowed):
        return True
    if any(address in network for network in NEVER_PUBLIC):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
