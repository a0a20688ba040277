"""TLS to a real server with certificates: encrypted, and refused where the certificate is of another authority or address."""

from __future__ import annotations

import datetime
import getpass
import ipaddress
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import MySQLdb
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ops_ui.backup.database_programs import load_program, option_file
from ops_ui.config.database_url import database
from ops_ui.config.tls import is_encrypted
from ops_ui.start.database_server import connect
from tests.acceptance.private_server import IS_INSTALLED
from tests.support.running import state_folder, wait_until

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(not IS_INSTALLED, reason="MariaDB is not installed here, so no server can be given certificates"),
]

PASSWORD = "a long enough password"


@dataclass(frozen=True)
class Authority:
    """Signs certificates for addresses of servers."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def new(cls, name: str) -> Authority:
        return cls(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), ec.generate_private_key(ec.SECP256R1()))

    def write(self, path: Path) -> Path:
        """Its own certificate."""
        return self._issue(path, self.name, self.key, x509.BasicConstraints(ca=True, path_length=None))

    def write_for(self, address: str, folder: Path) -> tuple[Path, Path]:
        """Certificate and key of a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        (folder / "server-key.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
        )
        return self._issue(folder / "server.pem", name, key, names), folder / "server-key.pem"

    def _issue(self, path: Path, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> Path:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self.key, hashes.SHA256())
        )
        path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        return path


@dataclass(frozen=True)
class TlsServer:
    folder: Path
    port: int
    authority: Authority
    ca: Path
    other_ca: Path

    def url(self, query: str) -> str:
        return f"mysql://tls:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/mysql{query}"

    def present_certificate_for(self, address: str) -> None:
        """From now on; connections that exist keep theirs."""
        self.authority.write_for(address, self.folder)
        self.execute("FLUSH SSL")

    def execute(self, sql: str, *arguments: object) -> None:
        root = MySQLdb.connect(user=getpass.getuser(), unix_socket=str(self.folder / "my.sock"))
        with closing(root), closing(root.cursor()) as cursor:
            cursor.execute(sql, arguments)


@pytest.fixture(scope="module")
def server() -> Iterator[TlsServer]:
    """A throw-away MariaDB on 127.0.0.1 whose certificate is for that address, and for no other."""
    with state_folder() as folder:
        authority = Authority.new("headrace test authority")
        ca, other = authority.write(folder / "ca.pem"), Authority.new("somebody else").write(folder / "other.pem")
        certificate, key = authority.write_for("127.0.0.1", folder)
        user, data, path = getpass.getuser(), folder / "data", folder / "my.sock"
        subprocess.run(
            [program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", f"--user={user}", "--skip-test-db",
             "--auth-root-authentication-method=socket", f"--auth-root-socket-user={user}"],
            check=True, capture_output=True,
        )  # fmt: skip
        with closing(socket.create_server(("127.0.0.1", 0))) as probe:
            port = probe.getsockname()[1]
        process = subprocess.Popen(
            [program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={path}", f"--user={user}", f"--port={port}",
             "--bind-address=127.0.0.1", f"--pid-file={folder / 'pid'}", f"--ssl-cert={certificate}", f"--ssl-key={key}",
             f"--ssl-ca={ca}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_until(path.exists, "the server listens")
            made = TlsServer(folder, port, authority, ca, other)
            made.execute("CREATE USER tls IDENTIFIED BY %s", PASSWORD)
            made.execute("GRANT ALL ON *.* TO tls")
            yield made
        finally:
            process.terminate()
            process.wait(60)


def program(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    assert path is not None
    return path


def is_encrypted_by(url: str) -> bool:
    with closing(connect(database(url), "mysql")) as connection:
        return is_encrypted(connection)


def test_required_is_encrypted(server: TlsServer) -> None:
    assert is_encrypted_by(server.url("?ssl=required"))


def test_the_right_authority_and_address_are_let_in(server: TlsServer) -> None:
    assert is_encrypted_by(server.url(f"?ssl=verify-full&ca={server.ca}"))


def test_a_certificate_of_another_authority_is_refused(server: TlsServer) -> None:
    with pytest.raises(MySQLdb.OperationalError, match=r"(?i)ssl|tls|certificate"):
        is_encrypted_by(server.url(f"?ssl=verify-full&ca={server.other_ca}"))


def test_a_certificate_for_another_address_is_refused(server: TlsServer) -> None:
    server.present_certificate_for("127.0.0.2")
    try:
        with pytest.raises(MySQLdb.OperationalError, match=r"(?i)ssl|tls|certificate"):
            is_encrypted_by(server.url(f"?ssl=verify-full&ca={server.ca}"))
    finally:
        server.present_certificate_for("127.0.0.1")


@pytest.mark.parametrize(("authority", "is_let_in"), [("ca", True), ("other_ca", False)])
def test_the_programs_of_a_backup_check_it_too(server: TlsServer, authority: str, is_let_in: bool) -> None:
    client = load_program("mariadb")
    url = server.url(f"?ssl=verify-full&ca={getattr(server, authority)}")
    with option_file(database(url), client.family) as login:
        command = [client.path, login, "--batch", "--execute", "SHOW SESSION STATUS LIKE 'Ssl_cipher'"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0) is is_let_in, done.stderr
    assert ("TLS" in done.stdout) is is_let_in
