"""The HTTP client connects to public addresses only, to the very address that it checked, and trusts no one by default."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from connectors import http_client
from connectors.http_client import AddressRefused, BadUrl, check_url, client
from tests.support.receiver import receiving

Resolve = Callable[..., list[Any]]


@pytest.fixture(autouse=True)
def _fresh_clients() -> Iterator[None]:
    http_client.close_clients()
    yield
    http_client.close_clients()


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Make every name resolve to the given addresses, one list for each look-up (the last one from then on)."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *arguments: Any, **options: Any) -> list[Any]:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            asked.append(host)
            found = answers[min(len(asked), len(answers)) - 1]
            return [entry for address in found for entry in real(address, port, *arguments, **options)]
        return real(host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "127.1", "2130706433", "localhost"])
def test_loopback_is_refused_in_every_notation(host: str) -> None:
    with receiving() as receiver:
        with pytest.raises(AddressRefused, match="HEADRACE_FORWARD_ALLOWED_NETWORKS"):
            client().post(receiver.url(host=host))
        assert receiver.requests.empty()
        assert receiver.connections == 0


def test_a_name_that_leads_inside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, ["169.254.169.254"])
    with pytest.raises(AddressRefused, match=r"hooks\.example\.com resolves to 169\.254\.169\.254"):
        client().post("http://hooks.example.com/")


def test_a_name_that_changes_after_the_check_changes_nothing(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """DNS rebinding: allowed when looked up, another address a moment later. There is one look-up, and its answer is connected to."""
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.2/32"]
    with receiving() as receiver:
        asked = resolving(monkeypatch, ["127.0.0.2"], ["127.0.0.1"])
        with pytest.raises(httpx.ConnectError) as failed:  # nobody listens on 127.0.0.2; the receiver on 127.0.0.1 is never reached
            client().post(receiver.url(host="rebind.example.com"))
        assert not isinstance(failed.value, AddressRefused)
        assert asked == ["rebind.example.com"]
        assert receiver.connections == 0


def test_only_the_allowed_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.1/32"]
    resolving(monkeypatch, ["10.255.255.1", "127.0.0.1"])
    with receiving() as receiver:
        assert client().post(receiver.url(host="two.example.com")).status_code == 200


def test_the_next_address_is_tried_when_one_does_not_answer(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    resolving(monkeypatch, ["127.0.0.2", "127.0.0.1"])
    with receiving() as receiver:
        assert client().post(receiver.url(host="two.example.com")).status_code == 200
        assert receiver.requests.get(timeout=5).headers["host"] == f"two.example.com:{receiver.port}"


def test_a_name_that_does_not_resolve_is_a_connect_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(httpx.ConnectError, match=r"nowhere\.example\.com cannot be resolved"):
        client().post("http://nowhere.example.com/")


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url(""))
        monkeypatch.setenv("ALL_PROXY", proxy.url(""))
        with pytest.raises(AddressRefused):
            client().post("http://10.0.0.1/")
        assert proxy.connections == 0


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://user:secret@example.com/", "user name or password"),
        ("https://user@example.com/", "user name or password"),
        ("ftp://example.com/", "must start with"),
        ("example.com/hook", "must start with"),
        ("https:///hook", "has no host"),
        ("https://example.com:99999/", "an invalid port"),
        ("https://example.com:0/", "an invalid port"),
        ("https://exa\nmple.com/", "malformed"),
        ("", "must start with"),
    ],
)
def test_a_url_that_cannot_be_a_destination_is_refused_without_being_shown(url: str, named: str) -> None:
    with pytest.raises(BadUrl, match=named) as refused:
        check_url(url)
    assert "secret" not in str(refused.value)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path / "both.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


def test_a_certificate_of_an_unknown_authority_is_refused(
    certificate: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with receiving(lambda sock: context.wrap_socket(sock, server_side=True)) as receiver:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            client("untrusting").post(receiver.url(scheme="https"))
        assert receiver.requests.empty()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert client("trusting").post(receiver.url(scheme="https")).status_code == 200


def test_a_forked_child_has_clients_of_its_own() -> None:
    mine = client("crm")
    assert client("crm") is mine
    assert client("other") is not mine
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"own" if client("crm") is not mine else b"shared")
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"own"


def test_who_leaves_a_with_block_or_closes_the_client_closes_it_for_nobody(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8", "::1/128"]
    with receiving() as receiver:
        with client("crm") as first, client("crm") as nested:
            assert nested.post(receiver.url()).status_code == first.post(receiver.url()).status_code
        client("crm").close()
        assert client("crm") is first
        assert client("crm").post(receiver.url()).is_success
    http_client.close_clients()
    assert client("crm") is not first
