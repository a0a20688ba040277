"""Which addresses a flow may connect to."""

from __future__ import annotations

import pytest

from connectors.addresses import is_allowed, networks


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(address, ())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd12:3456::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "2001:0:7f00:1::",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "192.0.0.9",
        "192.0.0.192",
        "192.88.99.1",
        "3fff::1",
        "fec0::1",
        "fe80::5efe:808:808",
        "2606::5efe:7f00:1",
        "2606::200:5efe:a9fe:a9fe",
    ],
)
def test_addresses_inside_are_refused_in_every_notation(address: str) -> None:
    assert not is_allowed(address, ())


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"])
def test_an_allowed_network_counts_in_every_notation(address: str) -> None:
    assert is_allowed(address, networks(["10.0.0.0/8"]))
    assert not is_allowed(address, networks(["192.168.0.0/16", "fd00::/8"]))


def test_allowing_a_network_allows_no_other() -> None:
    assert not is_allowed("127.0.0.1", networks(["10.0.0.0/8"]))
