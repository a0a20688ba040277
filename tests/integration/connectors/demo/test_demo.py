"""The demo: loads through the real ingress, once, and shows what it promises."""

from __future__ import annotations

import io
import json
import sys

import pytest
from django.core.management import call_command
from django.test import RequestFactory
from django.urls import resolve
from standardwebhooks import Webhook

from connectors import demo, secrets
from connectors.demo import removal, samples
from connectors.flows import connections
from connectors.ingress import endpoint_facts
from connectors.management.commands.load_demo import local_url
from connectors.models import AuditEntry, Connection, Endpoint, Receipt
from ops_ui.config.environment import Bind
from projection.database import clock

URL = "http://127.0.0.1:8000"


def load_demo(*arguments: str) -> dict:
    out = io.StringIO()
    call_command("load_demo", "--json", *arguments, stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture(autouse=True)
def _fresh():
    connections.of.forget()
    endpoint_facts.find.forget()


def test_loading_makes_the_configuration_and_stores_every_sample_once(database):
    done = load_demo()
    samples_known = {slug: len(list(samples.read(slug))) for slug in samples.ENDPOINTS}
    assert len(done["created"]) == 17
    assert done["posted"] == {"accepted": sum(samples_known.values()) - 1, "duplicate": 1}
    assert Receipt.objects.count() == sum(samples_known.values()) - 1
    assert set(Receipt.objects.values_list("state", flat=True)) == {"pending"}


def test_loading_again_changes_nothing(database):
    load_demo()
    before = [list(table.objects.order_by("pk").values()) for table in (Endpoint, Connection, Receipt, AuditEntry)]
    done = load_demo()
    assert (done["created"], done["posted"]) == ([], {})
    assert [list(table.objects.order_by("pk").values()) for table in (Endpoint, Connection, Receipt, AuditEntry)] == before


def test_a_connection_that_was_led_elsewhere_stays_there(database):
    load_demo()
    Connection.objects.filter(name=demo.CLOSED).update(url="https://elsewhere.example.com/")
    load_demo()
    assert Connection.objects.get(name=demo.CLOSED).url == "https://elsewhere.example.com/"


def test_a_load_that_was_cut_off_is_completed_by_the_next(database):
    load_demo()
    Receipt.objects.filter(id__in=list(Receipt.objects.order_by("-id").values_list("id", flat=True)[:5])).delete()
    assert load_demo()["posted"] == {"accepted": 5}


def test_orders_come_on_top_each_time_they_are_asked_for(database):
    load_demo()
    before = Receipt.objects.count()
    assert load_demo("--orders", "20")["posted"] == {"accepted": 20}
    assert load_demo("--orders", "20")["posted"] == {"accepted": 20}
    assert Receipt.objects.count() == before + 40
    newest = [json.loads(body) for body in Receipt.objects.order_by("-id").values_list("body", flat=True)[:40]]
    assert len({item["id"] for item in newest}) == 40
    assert len({item["order"]["id"] for item in newest}) == 36  # each tenth is a second event of the order before it
    assert load_demo()["posted"] == {}


@pytest.mark.parametrize("count", ["-1", "10001"])
def test_a_count_of_orders_that_is_out_of_bounds_is_refused(database, count):
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("load_demo", "--json", "--orders", count, stdout=out)
    assert ended.value.code == 2
    assert json.loads(out.getvalue())["error"]["reason"] == "--orders must be 0 to 10000."
    assert Endpoint.objects.count() == 0


def test_the_switch_leads_both_connections_to_where_the_service_answers_now(database):
    load_demo()
    load_demo("--receiver", "closed", "--service-url", "http://127.0.0.1:9000")
    assert dict(Connection.objects.values_list("name", "url")) == {
        demo.RECEIVER: "http://127.0.0.1:9000/demo/receiver",
        demo.CLOSED: "http://127.0.0.1:9000/demo/closed",
    }


def test_the_receiver_of_the_orders_is_opened_and_closed_by_a_switch(database):
    load_demo()
    assert load_demo("--receiver", "closed")["changed"] == []
    assert load_demo("--receiver", "open")["changed"] == ["connection demo-closed"]
    assert Connection.objects.get(name=demo.CLOSED).url == f"{URL}/demo/receiver"
    assert load_demo()["changed"] == []
    assert load_demo("--receiver", "closed")["changed"] == ["connection demo-closed"]
    assert Connection.objects.get(name=demo.CLOSED).url == f"{URL}/demo/closed"


@pytest.mark.parametrize(
    ("service_url", "allowed", "setting"),
    [
        ("http://127.0.0.1:8000", [], "127.0.0.1/32"),
        ("http://localhost:8000", [], "127.0.0.1/32"),
        ("http://[::1]:8000", ["127.0.0.1/32"], "::1/128"),
        ("http://127.0.0.1:8000", ["127.0.0.1/32"], None),
        ("https://hooks.example.com", [], None),
    ],
)
def test_an_address_that_flows_may_not_post_to_is_told(database, settings, service_url, allowed, setting):
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = allowed
    warnings = load_demo("--service-url", service_url)["warnings"]
    assert len(warnings) == (setting is not None)
    assert all(warning.endswith(f"HEADRACE_FORWARD_ALLOWED_NETWORKS={setting}") for warning in warnings)


def test_secrets_are_random_per_installation_and_in_no_file(database):
    load_demo()
    values = {secrets.live(row.secrets, clock.now())[0] for row in (*Endpoint.objects.all(), *Connection.objects.all())}
    assert len(values) == 5  # four endpoints, and one for both connections
    assert "whsec_" not in demo.FILE.read_text()


def test_a_locked_installation_is_left_alone(database, settings):
    settings.HEADRACE_CONFIG_LOCKED = True
    assert load_demo() == {"skipped": "locked"}
    assert Endpoint.objects.count() == 0


@pytest.mark.parametrize(
    ("bind", "url"),
    [
        (Bind("127.0.0.1", 8000), "http://127.0.0.1:8000"),
        (Bind("0.0.0.0", 9000), "http://127.0.0.1:9000"),
        (Bind("::", 9000), "http://127.0.0.1:9000"),
        (Bind("::1", 9000), "http://[::1]:9000"),
    ],
)
def test_the_receiver_is_reached_where_the_service_listens(settings, bind, url):
    settings.HEADRACE_BIND = bind
    assert local_url() == url


def post(path: str, body: bytes, secret: str | None = None):
    headers = {"webhook-id": "evt:1", "webhook-timestamp": "0", "webhook-signature": "v1,AAAA"}
    if secret is not None:
        now = clock.now()
        signature = Webhook(secret).sign("evt:1", now, body.decode())
        headers |= {"webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    return answer(RequestFactory().post(path, body, content_type="application/json", headers=headers))


def answer(request):
    return resolve(request.path).func(request)


def test_the_receiver_takes_what_the_connection_signs_and_nothing_else(database):
    assert post("/demo/receiver", b"{}").status_code == 404
    demo.load(URL, actor="test")
    connections.of.forget()
    secret = secrets.live(Connection.objects.get(name=demo.RECEIVER).secrets, clock.now())[0]
    assert post("/demo/receiver", b'{"a": 1}', secret).status_code == 204
    assert post("/demo/receiver", b'{"a": 1}').status_code == 401
    assert post("/demo/receiver", b"\xff\xfe").status_code == 401
    assert answer(RequestFactory().get("/demo/receiver")).status_code == 405


def test_the_closed_receiver_answers_gone(database):
    gone = post("/demo/closed", b"{}")
    assert (gone.status_code, json.loads(gone.content)["code"]) == (410, "closed")


def test_the_receiver_bounds_what_it_reads(database, monkeypatch):
    demo.load(URL, actor="test")
    monkeypatch.setattr(sys.modules["connectors.demo.receiver"], "LONGEST_BODY_BYTES", 10)
    assert post("/demo/receiver", b"x" * 11).status_code == 413


def test_a_demo_that_shares_its_namespace_is_not_removed(database, monkeypatch):
    monkeypatch.setattr(removal, "KEPT_SECONDS", 0.0)
    load_demo()
    connections_of_a_user = Connection.objects.create(namespace="demo", name="mine", url="https://x", created_at=clock.now())
    with pytest.raises(SystemExit) as ended:
        load_demo("--remove")
    assert ended.value.code == 2
    assert set(Endpoint.objects.values_list("state", flat=True)) == {"enabled"}
    connections_of_a_user.delete()
    assert load_demo("--remove")["removed"]["receipts"] == 36
    with pytest.raises(SystemExit) as ended:
        load_demo("--remove")
    assert ended.value.code == 1


def test_the_demo_takes_no_event_of_the_users_namespace(database):
    load_demo()
    assert {row.namespace for table in (Endpoint, Connection, Receipt) for row in table.objects.all()} == {"demo"}
