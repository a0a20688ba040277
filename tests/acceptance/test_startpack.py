"""A pack as `startpack` writes it: its own tests pass, and can fail; it is installed, takes signed deliveries and runs its flow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.service import Service, service
from tests.support import signing
from tests.support.commands import run
from tests.support.running import CHECKOUT

pytestmark = pytest.mark.acceptance

SECRET = "the secret of the shop"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    assert run("startpack", "acme_shop", "--into", str(tmp_path))[0] == 0
    return tmp_path / "acme_shop"


@pytest.fixture
def site(package: Path) -> Iterator[Service]:
    paths = os.pathsep.join([str(package.parent), str(CHECKOUT)])
    with service(HEADRACE_APPS="acme_shop", PYTHONPATH=paths, ACME_SHOP_SECRET=SECRET) as made:
        yield made


def run_own_tests(site: Service, *command: str) -> tuple[int, str]:
    """Exit code and output of the package's own tests, run as it says: without the secret of the installation."""
    environment = {name: value for name, value in site.environment.items() if name != "ACME_SHOP_SECRET"}
    done = subprocess.run(
        [sys.executable, *command], cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def test_its_own_tests_pass_at_once_and_find_what_was_broken(site: Service, package: Path) -> None:
    code, output = run_own_tests(site, "manage.py", "test", "acme_shop")
    assert (code, "Ran 4 tests" in output) == (0, True), output
    pytest_of_it = ("-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(package), "-p", "no:cacheprovider", str(package))
    code, output = run_own_tests(site, *pytest_of_it)
    assert (code, "4 passed" in output) == (0, True), output

    packs = package / "packs.py"
    text = packs.read_text(encoding="utf-8")
    for good, bad, tests, count in (
        ('order = required(event, "order")', 'order = required(event, "total")', "Reading", 2),
        ('encoding="hex"', 'encoding="base64"', "Reading", 1),
        ("return request.headers.get(DELIVERY_ID)", "return None", "Running", 1),
    ):
        assert good in text
        packs.write_text(text.replace(good, bad), encoding="utf-8")
        code, output = run_own_tests(site, "manage.py", "test", f"acme_shop.test_acme_shop.{tests}")
        assert code == 1, output
        assert output.count("\nERROR: ") + output.count("\nFAIL: ") == count, output


def test_it_is_installed_and_takes_what_its_provider_signs(site: Service, package: Path) -> None:
    site.manage("config", "apply", str(package / "acme_shop.toml"))
    assert [one["name"] for one in site.manage("packs", "list")["packs"]] == ["acme_shop"]
    site.start()
    (delivery,) = json.loads((package / "fixture.json").read_text(encoding="utf-8"))["deliveries"]
    body = json.dumps(delivery["body"]).encode()
    path, headers = "/ingress/default/acme_shop", delivery["headers"]
    assert site.post(path, body, headers)[0] == 401
    signed = {**headers, "X-Acme-Shop-Signature": signing.hmac_hex(body, SECRET)}
    assert [site.post(path, body, signed)[0] for _ in range(2)] == [202, 200]
    site.until_idle()
    found = site.fetch("SELECT SourceLane, State FROM `_System_ConnectorWorkItem` ORDER BY SourceLane")
    assert found == [("order:7", "processed"), ("order:8", "skipped")]
    assert "order 7: order.created, order.changed, total 12.50" in site.processes[1].log.read_text(encoding="utf-8")
    site.assert_audit_is_clean()
