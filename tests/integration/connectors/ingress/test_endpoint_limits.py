"""An endpoint's limits as configuration: read, applied, exported, compared and listed; what another version wrote stays."""

from __future__ import annotations

import json

import pytest

from connectors import durations
from connectors.configuration import export
from connectors.configuration.apply import apply
from connectors.configuration.errors import BadConfiguration
from connectors.configuration.file import parse
from connectors.ingress import endpoint_facts
from connectors.ingress.limit_values import EndpointLimits
from connectors.models import Endpoint
from tests.support import factories
from tests.support.commands import run

pytestmark = pytest.mark.usefixtures("database")

ENDPOINT = '[packs.github.endpoint.repo]\nsecrets = ["plain:0123456789abcdef0123"]\n'
LIMITS = 'limit = "200/s"\nconcurrency = 4\nspool = false\n'


def applied(text: str) -> list[str]:
    report = apply(parse(text), actor="test")
    return [change for step in report.steps if step.kind == "endpoint" for change in step.changes]


def test_limits_are_applied_and_exported_as_they_were_written() -> None:
    applied(ENDPOINT + LIMITS)
    facts = endpoint_facts.load(("default", "repo"))
    assert facts is not None
    assert facts.limits == EndpointLimits(None, (200, 1.0), 4, False)
    assert not facts.spools
    exported = export.as_toml(export.as_table("default"))
    assert all(line in exported for line in ('limit = "200/1s"', "concurrency = 4", "spool = false"))
    assert applied(exported) == []


def test_each_change_is_told_and_what_is_left_out_has_its_default_again() -> None:
    applied(ENDPOINT + LIMITS)
    assert applied(ENDPOINT + 'limit = "5/10s"\nmax_body_bytes = 2048\n') == [
        "max_body_bytes: None → 2048",
        "limit: 200/1s → 5/10s",
        "concurrency: 4 → None",
        "spool: False → None",
    ]
    facts = endpoint_facts.load(("default", "repo"))
    assert facts is not None
    assert facts.spools, "GitHub never sends a refused delivery again"


def test_members_that_another_version_wrote_stay() -> None:
    applied(ENDPOINT)
    Endpoint.objects.update(limits=json.dumps({"of_a_later_version": 1, "limit": [1, 1.0]}))
    applied(ENDPOINT)
    assert json.loads(Endpoint.objects.get().limits) == {"of_a_later_version": 1}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('limit = "0/s"', "limit: '0/s' is not a valid rate; write a number, a slash and a duration, e.g. 100/10s"),
        ("limit = 5", 'limit: must be a rate in quotes, e.g. "100/10s"'),
        ("concurrency = 0", "concurrency: must be at least 1"),
        ('spool = "yes"', "spool: must be true or false"),
    ],
)
def test_other_values_are_refused_in_a_sentence(line: str, problem: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        parse(ENDPOINT + line)
    assert caught.value.problems == [f"packs.github.endpoint.repo.{problem}"]


def test_a_rate_of_one_unit_needs_no_number() -> None:
    assert durations.rate("200/s") == (200, 1.0)
    assert durations.rate("3/h") == (3, 3600.0)
    assert durations.readable_rate(200, 1.0) == "200/1s"


def test_the_command_takes_and_lists_them() -> None:
    factories.install("github")
    options = ["--secret", "plain:0123456789abcdef0123", "--limit", "200/s", "--concurrency", "4", "--no-spool"]
    assert run("endpoints", "create", "github", "repo", *options)[0] == 0
    (line,) = run("endpoints", "list")[1]["endpoints"]
    assert (line["limit"], line["concurrency"], line["spool"], line["max_body_bytes"]) == ("200/1s", 4, False, None)


def test_the_command_refuses_a_bad_value_by_its_option() -> None:
    factories.install("github")
    code, answer = run("endpoints", "create", "github", "repo", "--secret", "plain:0123456789abcdef0123", "--concurrency", "0")
    assert (code, "--concurrency: must be at least 1" in json.dumps(answer)) == (2, True)
    assert Endpoint.objects.count() == 0
