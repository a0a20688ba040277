"""Configuration commands: their JSON, their exit codes, and the lock."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from connectors.configuration.live_packs import live_pack
from connectors.models import AuditEntry, Endpoint, Pack, Route

FILE = """
[packs.generic.endpoint.in]
secrets = ["plain:a plain secret"]

[routes.things]
pack = "generic"
on = ["*"]
kind = "thing.changed"
mode = "projection"
flow = "log"
settle = "5s"
"""


def run(*arguments: str) -> tuple[dict, int]:
    out = io.StringIO()
    code = 0
    try:
        call_command(*arguments, "--json", stdout=out, stderr=io.StringIO())
    except SystemExit as end:
        code = int(end.code or 0)
    return json.loads(out.getvalue()), code


@pytest.fixture
def file(database, tmp_path):
    path = tmp_path / "headrace.toml"
    path.write_text(FILE)
    return path


def test_config_apply_reports_and_ends_with_0(file):
    answer, code = run("config", "apply", str(file), "--reason", "first")
    assert code == 0
    assert [item["name"] for item in answer["created"]] == ["generic", "in", "things"]
    assert (answer["changed"], answer["unchanged"], answer["dry_run"]) == ([], [], False)
    entry = AuditEntry.objects.get(action="config.apply")
    assert entry.actor.startswith("cli:")
    assert (entry.reason, entry.count) == ("first", 3)


def test_config_apply_dry_run_ends_with_0_and_keeps_nothing(file):
    answer, code = run("config", "apply", str(file), "--dry-run")
    assert (code, answer["dry_run"], len(answer["created"])) == (0, True, 3)
    assert Pack.objects.count() == 0


def test_config_diff_ends_with_1_on_drift_2_on_a_mistake_and_0_without(file):
    answer, code = run("config", "diff", str(file))
    assert (code, answer["drift"]) == (1, True)
    assert run("config", "diff", f"{file}.gone")[1] == 2
    run("config", "apply", str(file))
    answer, code = run("config", "diff", str(file))
    assert (code, answer["drift"], answer["extras"]) == (0, False, [])


def test_a_bad_file_ends_with_2_and_lists_every_problem(file):
    file.write_text(FILE.replace("projection", "latest").replace('"5s"', "5"))
    answer, code = run("config", "apply", str(file))
    assert code == 2
    assert answer["error"]["code"] == "configuration"
    assert len(answer["error"]["problems"]) == 2
    with pytest.raises(CommandError, match=r"routes\.things\.mode: must be") as caught:
        call_command("config", "apply", str(file))
    assert caught.value.returncode == 2


def test_config_export_writes_what_apply_takes(file, tmp_path):
    run("config", "apply", str(file))
    out = io.StringIO()
    call_command("config", "export", stdout=out)
    exported = tmp_path / "exported.toml"
    exported.write_text(out.getvalue())
    assert run("config", "diff", str(exported))[1] == 0
    answer, code = run("config", "export")
    assert (code, answer["toml"]) == (0, out.getvalue())
    assert answer["configuration"]["routes"]["things"]["flow"] == "log"


def test_packs_step_by_step(database):
    answer, code = run("packs", "install", "generic")
    assert (code, answer["installed"]["name"]) == (0, "generic")
    answer, code = run("packs", "list")
    assert [(p["name"], p["state"], p["endpoints"], p["routes"]) for p in answer["packs"]] == [("generic", "installed", [], [])]
    assert {"hubspot", "github", "generic"} <= {each["name"] for each in answer["available"]}
    assert run("packs", "disable", "generic")[0]["changed"]
    answer, code = run("packs", "upgrade", "generic")
    assert (code, answer["upgraded"]["routes"]) == (0, [])
    assert run("packs", "enable", "generic")[1] == 0
    assert run("packs", "remove", "generic", "--reason", "x", "--yes")[1] == 0
    assert run("packs", "list")[0]["packs"] == []


def test_what_is_not_there_ends_with_1_and_a_refusal(database):
    answer, code = run("packs", "disable", "nope")
    assert code == 1
    (refused,) = answer["refused"]
    assert (refused["id"], refused["code"]) == ("nope", "not_found")
    assert run("routes", "retire", "nope", "--reason", "x", "--yes")[1] == 1
    assert run("endpoints", "rotate", "nope", "--generate-secret")[1] == 1


def test_a_change_that_is_refused_ends_with_2(database):
    run("packs", "install", "generic")
    answer, code = run("packs", "install", "generic")
    assert (code, answer["error"]["code"]) == (2, "configuration")


def test_endpoints_step_by_step(database):
    run("packs", "install", "github")
    answer, code = run("endpoints", "create", "github", "repo", "--generate-secret", "--public-url", "https://h.example.com")
    assert code == 0
    first = answer["created"]["secret"]
    assert answer["created"]["path"] == "/ingress/default/repo"
    answer, code = run("endpoints", "rotate", "repo", "--secret", "plain:the next secret", "--overlap", "1h")
    assert code == 0
    assert answer["rotated"]["old_ends_at"].endswith("Z")
    assert "secret" not in answer["rotated"]
    answer, code = run("endpoints", "list")
    (line,) = answer["endpoints"]
    assert (line["slug"], line["live_secrets"], line["public_url"]) == ("repo", 2, "https://h.example.com")
    assert first not in json.dumps(answer)


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "github", "repo"),
        ("create", "github", "repo", "--secret", "bare"),
        ("create", "github", "Bad Slug", "--generate-secret"),
        ("create", "github", "repo", "--generate-secret", "--public-url", "nothing"),
        ("create", "github", "repo", "--generate-secret", "--max-body-bytes", "1"),
        ("rotate", "repo"),
        ("rotate", "repo", "--generate-secret", "--overlap", "soon"),
    ],
)
def test_endpoint_usage_errors_end_with_2(database, arguments):
    run("packs", "install", "github")
    answer, code = run("endpoints", *arguments)
    assert code == 2
    assert answer["error"]["reason"]
    assert Endpoint.objects.count() == 0


def publish(*more: str) -> tuple[dict, int]:
    words = ("--pack", "generic", "--on", "a", "--on", "b.*", "--kind", "k", "--mode", "projection", "--flow", "log")
    return run("routes", "publish", "things", *words, *more)


def test_routes_step_by_step(database):
    run("packs", "install", "generic")
    answer, code = publish("--settle", "5s", "--limit", '{ name = "x", rate = "1/1s" }', "--mask", "$.email")
    assert (code, answer["version"], answer["created"]) == (0, 1, True)
    assert not publish("--settle", "5s", "--limit", '{ name = "x", rate = "1/1s" }', "--mask", "$.email")[0]["created"]
    assert publish("--retry", '{ base = "1s", attempts = 3 }')[0]["version"] == 2
    (line,) = run("routes", "list")[0]["routes"]
    assert (line["key"], line["version"], line["on"], line["state"]) == ("things", 2, ["a", "b.*"], "current")
    assert run("routes", "retire", "things", "--reason", "done", "--yes")[0] == {"retired": {"key": "things", "version": 2}}
    assert run("routes", "list")[0] == {"routes": []}
    states = [(each["version"], each["state"]) for each in run("routes", "list", "--all")[0]["routes"]]
    assert states == [(2, "retired"), (1, "superseded")]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--settle", "5"), "--settle: '5' is not a valid duration"),
        (("--retry", "{ attempts = 0 }"), "--retry.attempts: must be at least 1"),
        (("--retry", "attempts=0"), "--retry is not valid; write it as in the file"),
        (("--target-lane", "x:{id}"), "is a projection but sets target_lane"),
        (("--source-id-case", "lower"), "--source-id-case: must be 'exact' or 'fold'"),
    ],
)
def test_route_usage_errors_end_with_2_and_name_the_option(database, more, sentence):
    run("packs", "install", "generic")
    answer, code = publish(*more)
    assert code == 2
    assert sentence in answer["error"]["reason"]
    assert Route.objects.count() == 0


def test_flows_list_names_who_uses_them_and_what_is_missing(database):
    run("packs", "install", "generic")
    publish()
    words = ("--pack", "generic", "--on", "*", "--kind", "k", "--mode", "per_event", "--flow", "acme.sync")
    run("routes", "publish", "other", *words, "--allow-missing-code")
    answer, code = run("flows", "list")
    assert code == 0
    assert next(flow["routes"] for flow in answer["flows"] if flow["name"] == "log") == ["things"]
    assert answer["missing"] == [{"name": "acme.sync", "routes": ["other"]}]


def test_locked_configuration_changes_by_apply_alone(file, settings):
    settings.HEADRACE_CONFIG_LOCKED = True
    assert run("config", "apply", str(file))[1] == 0
    for arguments in (
        ("packs", "install", "github"),
        ("packs", "disable", "generic"),
        ("endpoints", "rotate", "in", "--generate-secret"),
        ("routes", "retire", "things", "--reason", "x", "--yes"),
    ):
        answer, code = run(*arguments)
        assert code == 2
        assert "HEADRACE_CONFIG_LOCKED is on" in answer["error"]["reason"]
    assert publish()[1] == 2
    assert live_pack("default", "generic").state == "installed"
    for arguments in (("packs", "list"), ("endpoints", "list"), ("routes", "list"), ("flows", "list"), ("config", "export")):
        assert run(*arguments)[1] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("packs", "list"),
        ("endpoints", "list"),
        ("routes", "list", "--all"),
        ("flows", "list"),
        ("config", "export"),
        ("secrets", "rewrap"),
    ],
)
def test_each_command_speaks_to_people_too(file, arguments):
    run("config", "apply", str(file))
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    assert out.getvalue().strip()
    assert not out.getvalue().startswith("{")


def test_prune_lists_and_asks_before_it_removes(file):
    run("config", "apply", str(file))
    file.write_text("[packs.generic.endpoint.in]\n")
    answer, code = run("config", "apply", str(file), "--prune", "--dry-run")
    assert (code, [(one["kind"], one["name"]) for one in answer["removed"]]) == (0, [("route", "things")])
    for forgotten in (("--yes",), ("--reason", "x")):
        answer, code = run("config", "apply", str(file), "--prune", *forgotten)
        assert (code, answer["error"]["reason"].partition(",")[0]) == (2, "This removes 1 item that the file does not name")
    assert Route.objects.get().deleted_at is None
    answer, code = run("config", "apply", str(file), "--prune", "--reason", "x", "--yes")
    assert (code, len(answer["removed"])) == (0, 1)
    assert Route.objects.get().deleted_at is not None
    assert run("config", "apply", str(file), "--prune")[1] == 0


def test_one_endpoint_is_disabled_enabled_and_removed(database):
    run("packs", "install", "generic")
    for slug in ("a", "b"):
        run("endpoints", "create", "generic", slug, "--secret", "plain:s")
    assert run("endpoints", "disable", "a", "--discard")[0] == {"name": "a", "state": "disabled", "changed": True}
    assert [(one["slug"], one["state"]) for one in run("endpoints", "list")[0]["endpoints"]] == [
        ("a", "disabled"),
        ("b", "enabled"),
    ]
    assert not run("endpoints", "disable", "a", "--discard")[0]["changed"]
    assert run("endpoints", "create", "generic", "a", "--secret", "plain:s")[1] == 2
    assert run("endpoints", "enable", "a")[0]["changed"]
    assert not Endpoint.objects.get(slug="a").discard_when_disabled
    assert run("endpoints", "remove", "a", "--yes")[1] == run("endpoints", "remove", "a", "--reason", "x")[1] == 2
    assert run("endpoints", "remove", "a", "--reason", "x", "--yes") == ({"removed": {"slug": "a"}}, 0)
    assert Endpoint.objects.get(slug="a").secrets == ""
    assert run("endpoints", "enable", "a")[1] == run("endpoints", "remove", "a", "--reason", "x", "--yes")[1] == 1
    actions = ["endpoint.create", "endpoint.create", "endpoint.disable", "endpoint.enable", "endpoint.remove"]
    entries = AuditEntry.objects.filter(action__startswith="endpoint.").order_by("id")
    assert [entry.action for entry in entries] == actions
    assert run("endpoints", "create", "generic", "a", "--secret", "plain:s")[1] == 0


def test_a_connection_is_disabled_enabled_and_removed_once_nothing_uses_it(file):
    file.write_text(
        FILE.replace('flow = "log"', 'flow = "http_forward"\nconnection = "crm"')
        + '[connections.crm]\nurl = "https://crm.example.com"\nsecret = "plain:whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"\n'
    )
    run("config", "apply", str(file))
    assert run("connections", "disable", "crm")[0] == {"name": "crm", "state": "disabled", "changed": True}
    (listed,) = run("connections", "list")[0]["connections"]
    assert (listed["state"], listed["routes"]) == ("disabled", ["things"])
    assert "whsec" not in json.dumps(listed)
    assert run("connections", "enable", "crm")[0]["changed"]
    answer, code = run("connections", "remove", "crm", "--reason", "x", "--yes")
    assert (code, answer["error"]["reason"]) == (2, "connection 'crm' is used by route things; retire or change them first")
    assert run("connections", "remove", "crm", "--yes")[1] == 2
    run("routes", "retire", "things", "--reason", "x", "--yes")
    assert run("connections", "remove", "crm", "--reason", "x", "--yes") == ({"removed": {"name": "crm"}}, 0)
    assert run("connections", "remove", "crm", "--reason", "x", "--yes")[1] == run("connections", "disable", "crm")[1] == 1


@pytest.mark.parametrize(
    "arguments", [("endpoints", "disable", "in"), ("connections", "disable", "crm"), ("endpoints", "remove", "in")]
)
def test_locked_configuration_disables_and_removes_nothing(database, settings, arguments):
    settings.HEADRACE_CONFIG_LOCKED = True
    answer, code = run(*arguments)
    assert (code, "config apply" in answer["error"]["reason"]) == (2, True)


@pytest.mark.parametrize("verb", ["apply", "diff"])
def test_a_misspelt_flow_ends_with_2_unless_its_code_may_be_missing(file, verb):
    file.write_text(FILE.replace('flow = "log"', 'flow = "lgo"'))
    answer, code = run("config", verb, str(file))
    assert (code, answer["error"]["problems"][0].partition("known")[0]) == (
        2,
        "routes.things: route 'things': flow 'lgo' is not installed here; did you mean 'log'? ",
    )
    answer, code = run("config", verb, str(file), "--allow-missing-code")
    assert (code, len(answer["warnings"])) == (1 if verb == "diff" else 0, 1)


def test_routes_publish_takes_a_missing_flow_only_when_it_is_allowed(file):
    run("config", "apply", str(file))
    words = (
        "routes",
        "publish",
        "late",
        "--pack",
        "generic",
        "--on",
        "*",
        "--kind",
        "k",
        "--mode",
        "per_event",
        "--flow",
        "acme.x",
    )
    assert run(*words)[1] == 2
    assert run(*words, "--allow-missing-code")[1] == 0
