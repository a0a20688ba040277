"""Configuration as code: apply, dry run, drift, export."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
from django.db import connection

from connectors import pack, secrets
from connectors.configuration import connections, endpoints, export, packs, routes
from connectors.configuration.apply import apply, draft_of
from connectors.configuration.connections import ConnectionDraft
from connectors.configuration.errors import BadConfiguration
from connectors.configuration.file import parse
from connectors.configuration.report import Extra
from connectors.configuration.stored_secrets import Secret
from connectors.models import AuditEntry, Connection, Endpoint, Namespace, Pack, Route
from projection.database import clock
from tests.support.rows import event_row, work_row

ACTOR = "test"
FILE = """
[packs.github.endpoint.repo]
public_url = "https://hooks.example.com"
secrets = ["env:GITHUB_SECRET"]

[packs.generic]
settings = { kind = "'thing'", source_id = "id" }

[packs.generic.endpoint.in]
secrets = ["plain:a plain secret"]
max_body_bytes = 2048
unverified = "refuse"

[connections.crm]
url = "https://crm.example.com/hook"
secret = "plain:whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

[routes.things]
pack = "generic"
on = ["*"]
kind = "thing.changed"
mode = "projection"
settle = "1500ms"
flow = "record_table"
source_id_case = "fold"
retry = { base = "5s", factor = 3, cap = "1h", attempts = 12, give_up_after = "24h" }
limit = { name = "api", rate = "100/10s" }
mask = ["$.email", "$.items[*].token"]

[routes.forward]
pack = "github"
on = ["push", "pull_request.*"]
kind = "repository.changed"
mode = "per_event"
flow = "http_forward"
connection = "crm"
limit = { name = "crm", concurrency = 8 }
target_lane = "repo:{id}"
queue_class = "interactive"
work_type = "mirror"
"""


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("GITHUB_SECRET", "the github secret")


def applied(text: str = FILE, **options):
    return apply(parse(text), actor=ACTOR, **options)


def rows() -> list[object]:
    """Everything that configuration writes."""
    return [list(table.objects.order_by("pk").values()) for table in (Namespace, Pack, Endpoint, Connection, Route, AuditEntry)]


def outcomes(report) -> list[tuple[str, str, str]]:
    return [(step.kind, step.name, step.outcome) for step in report.steps]


def test_applying_makes_everything_and_applying_again_changes_nothing(database):
    report = applied()
    assert outcomes(report) == [
        ("connection", "crm", "created"),
        ("pack", "github", "created"),
        ("endpoint", "repo", "created"),
        ("pack", "generic", "created"),
        ("endpoint", "in", "created"),
        ("route", "things", "created"),
        ("route", "forward", "created"),
    ]
    before = rows()
    again = applied()
    assert {step.outcome for step in again.steps} == {"unchanged"}
    assert not again.is_drift
    assert rows() == before


def test_a_dry_run_reports_what_apply_does_and_writes_nothing(database):
    dry = applied(dry_run=True)
    assert all(not table for table in rows())
    assert outcomes(dry) == outcomes(applied())
    changed = FILE.replace("1500ms", "3s").replace("2048", "4096").replace("crm.example.com", "crm2.example.com")
    before = rows()
    dry = applied(changed, dry_run=True)
    assert rows() == before
    assert dry.steps == applied(changed).steps
    assert not connection.in_atomic_block


def test_only_the_route_whose_content_changed_gets_a_version(database):
    applied()
    report = applied(FILE.replace("1500ms", "3s"))
    (step,) = report.of("changed")
    assert (step.name, step.changes) == ("things", ("version: 2", "settle_seconds: 1.5 → 3.0"))
    assert routes.current("default", "forward").version == 1


def test_reordered_or_reformatted_text_is_no_change(database):
    applied()
    text = FILE.replace("1500ms", "1500ms").replace("attempts = 12, ", "").replace('"24h"', '"1d"')
    assert not applied(text).changes_something


def test_one_refused_part_undoes_all_and_each_refused_part_has_its_line(database, monkeypatch):
    monkeypatch.delenv("GITHUB_SECRET")
    text = FILE + '\n[packs.nope]\n[routes.bad]\npack = "nope"\non = ["*"]\nkind = "k"\nmode = "per_event"\nflow = "log"\n'
    with pytest.raises(BadConfiguration) as caught:
        applied(text)
    assert [line.split(":")[0] for line in caught.value.problems] == ["packs.github.endpoint.repo", "packs.nope"]
    assert "the environment variable GITHUB_SECRET is not set" in caught.value.problems[0]
    assert "known: " in caught.value.problems[1]
    assert all(not table for table in rows())


def test_a_projection_with_a_target_lane_is_refused_when_the_file_is_applied(database):
    text = FILE.replace('source_id_case = "fold"', 'target_lane = "thing:{id}"')
    with pytest.raises(BadConfiguration, match=r"routes\.things: route 'things' is a projection but sets target_lane"):
        applied(text)


def test_drift_is_what_the_file_would_change_and_what_it_does_not_name(database):
    applied()
    draft = draft_of("things", parse(FILE).routes["things"])
    routes.publish("default", replace(draft, settle_seconds=9.0), actor=ACTOR)
    routes.publish("default", replace(draft, key="extra"), actor=ACTOR)
    report = applied(dry_run=True)
    assert report.is_drift
    assert [step.name for step in report.of("changed")] == ["things"]
    assert report.extras == (Extra("route", "extra"),)


def test_apply_removes_nothing_that_the_file_does_not_name(database):
    applied()
    before = rows()
    report = applied("[packs.github]\n")
    assert {(extra.kind, extra.name) for extra in report.extras} == {
        ("connection", "crm"),
        ("pack", "generic"),
        ("endpoint", "repo"),
        ("endpoint", "in"),
        ("route", "things"),
        ("route", "forward"),
    }
    assert rows() == before


def test_a_file_that_names_another_version_upgrades(database, monkeypatch):
    applied()
    monkeypatch.setattr(pack.find("github"), "version", "2")
    assert not applied().changes_something
    report = applied(FILE + '\n[packs.github]\nversion = "2"\n')
    (step,) = report.of("changed")
    assert step.changes == ("version: 1 → 2", "new route versions: forward")
    assert routes.current("default", "forward").version == 2
    assert not applied(FILE + '\n[packs.github]\nversion = "2"\n').changes_something


def test_settings_that_changed_are_replaced_and_absent_ones_are_kept(database):
    applied()
    assert [step.name for step in applied(FILE.replace("'thing'", "'object'")).of("changed")] == ["generic"]
    kept = applied("[packs.generic]\n")
    assert not kept.changes_something
    assert "object" in Pack.objects.get(name="generic").settings


def test_the_export_applies_without_a_change_and_holds_no_secret(database):
    applied()
    text = export.as_toml(export.as_table("default"))
    report = applied(text)
    assert not report.is_drift
    assert "a plain secret" not in text
    assert "whsec_" not in text
    assert 'secrets = ["env:GITHUB_SECRET"]' in text
    assert export.as_toml(export.as_table("default")) == text


def test_the_export_says_what_the_file_said(database):
    applied()
    exported, written = export.as_table("default"), tomllib.loads(FILE)
    assert exported["routes"]["forward"] == written["routes"]["forward"]
    assert exported["routes"]["things"] == written["routes"]["things"] | {
        "retry": {"base": "5s", "factor": 3.0, "cap": "1h", "attempts": 12, "give_up_after": "1d"}
    }
    assert exported["packs"]["generic"]["settings"] == written["packs"]["generic"]["settings"]


def test_an_empty_namespace_exports_an_empty_file(database):
    text = export.as_toml(export.as_table("nowhere"))
    assert parse(text).namespace == "nowhere"
    assert parse(text).routes == {}


def test_odd_texts_survive_the_export(database):
    packs.install("default", "generic", actor=ACTOR, settings={"kind": "'\"\\ é🎩\x7f\t\n'", "items": "a.b"})
    text = export.as_toml(export.as_table("default"))
    assert parse(text).packs["generic"].settings == {"kind": "'\"\\ é🎩\x7f\t\n'", "items": "a.b"}


def test_a_rotation_by_command_is_no_drift_once_the_reference_says_the_new_secret(database, monkeypatch):
    applied()
    monkeypatch.setenv("GITHUB_SECRET", "the next secret")
    endpoints.rotate("default", "repo", Secret("the next secret", "env:GITHUB_SECRET"), actor=ACTOR)
    assert not applied().changes_something
    assert secrets.live(Endpoint.objects.get(slug="repo").secrets, clock.now()) == ["the next secret", "the github secret"]


def test_prune_removes_what_the_file_does_not_name_and_its_dry_run_lists_it(database):
    applied()
    rest = '[packs.generic]\nsettings = { kind = "\'thing\'", source_id = "id" }\n'
    extras = applied(rest, dry_run=True).extras
    before = rows()
    dry = applied(rest, dry_run=True, prune=extras)
    assert rows() == before
    named = {
        ("route", "things"),
        ("route", "forward"),
        ("endpoint", "repo"),
        ("endpoint", "in"),
        ("pack", "github"),
        ("connection", "crm"),
    }
    assert {(step.kind, step.name) for step in dry.of("removed")} == named
    report = applied(rest, prune=extras)
    assert report.of("removed") == dry.of("removed")
    assert (report.extras, report.changes_something) == ((), True)
    assert [row.slug for row in Endpoint.objects.exclude(state="removed")] == []
    assert not Connection.objects.exists()
    assert AuditEntry.objects.filter(action="config.apply").latest("id").count == 6
    assert not applied(rest, dry_run=True).is_drift


def test_prune_leaves_what_came_after_it_was_listed(database):
    applied()
    connections.put("default", ConnectionDraft("late", "https://late.example.com"), actor=ACTOR)
    report = applied(prune=(Extra("connection", "gone"),))
    assert (report.of("removed"), report.extras) == ((), (Extra("connection", "late"),))


def test_prune_refuses_as_a_whole_what_is_still_used(database):
    applied()
    route = Route.objects.get(route_key="forward")
    work_row(event_row(routes.current("default", "forward")), "pending", route_id=route.id)
    rest = "".join(FILE.partition("[connections.crm]")[:1])
    extras = applied(rest, dry_run=True).extras
    with pytest.raises(BadConfiguration, match=r"connection crm: open work still posts to connection 'crm'"):
        applied(rest, prune=extras)
    assert routes.current("default", "forward") is not None


def test_what_an_operator_disabled_stays_so_and_applying_says_it(database):
    applied()
    endpoints.disable("default", "in", actor=ACTOR)
    connections.set_disabled("default", "crm", True, actor=ACTOR)
    packs.disable("default", "github", actor=ACTOR)
    report = applied()
    assert not report.changes_something
    assert [warning.partition(";")[0] for warning in report.warnings] == [
        "pack github is disabled",
        "endpoint in is disabled",
        "connection crm is disabled",
    ]
    assert Endpoint.objects.get(slug="in").state == "disabled"


def test_a_refused_connection_or_pack_is_told_once_beside_the_other_faults_of_its_routes(database, monkeypatch):
    monkeypatch.delenv("CRM_SECRET", raising=False)
    text = """
[packs.nope]
[packs.generic]
[connections.crm]
url = "https://crm.example.com"
secret = "env:CRM_SECRET"
[routes.forward]
pack = "generic"
on = ["*"]
kind = "k"
mode = "per_event"
flow = "http_forward"
connection = "crm"
[routes.lost]
pack = "nope"
on = ["*"]
kind = "k"
mode = "projection"
target_lane = "x:{id}"
flow = "lgo"
"""
    with pytest.raises(BadConfiguration) as refused:
        applied(text)
    assert [line.partition(":")[0] for line in refused.value.problems] == [
        "connections.crm",
        "packs.nope",
        "routes.lost",
        "routes.lost",
    ]
    assert not Pack.objects.exists()
