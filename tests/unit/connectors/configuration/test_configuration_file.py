"""The configuration file: what it may say, and the sentence for each thing that it may not."""

from __future__ import annotations

import pytest

from connectors.configuration.errors import BadConfiguration
from connectors.configuration.file import Configuration, parse, read, resolve
from projection.facts import RateLimit, RetryPolicy

EXAMPLE = """
[packs.hubspot.endpoint.crm]
public_url = "https://hooks.example.com"
secrets = ["env:HUBSPOT_SECRET"]

[routes.contact]
pack = "hubspot"
on = ["contact.creation", "contact.propertyChange"]
kind = "contact.changed"
mode = "projection"
settle = "5s"
flow = "crm.contact"
retry = { base = "5s", factor = 3, cap = "1h", attempts = 12, give_up_after = "24h" }
limit = { name = "hubspot-api", rate = "100/10s" }
mask = ["$.propertyValue"]
"""

ROUTE = """
[routes.r]
pack = "generic"
on = ["*"]
kind = "thing.changed"
mode = "per_event"
flow = "log"
"""


def problems(text: str) -> list[str]:
    with pytest.raises(BadConfiguration) as caught:
        parse(text)
    return caught.value.problems


def test_the_example_of_the_design_is_read():
    configuration = parse(EXAMPLE)
    assert configuration.namespace == "default"
    assert configuration.packs["hubspot"].endpoint["crm"].secrets == ("env:HUBSPOT_SECRET",)
    route = configuration.routes["contact"]
    assert route.settle == 5.0
    assert route.retry.policy() == RetryPolicy(5.0, 3.0, 3600.0, 12, 86_400.0)
    assert route.limit is not None
    assert route.limit.limit() == RateLimit("hubspot-api", 100, 10.0)


def test_an_empty_file_is_an_empty_configuration():
    assert parse("") == Configuration()


def test_a_route_says_little_and_the_rest_has_its_default():
    route = parse(ROUTE).routes["r"]
    assert route.retry.policy() == RetryPolicy()
    assert (route.queue_class, route.source_id_case, route.target_lane, route.settle) == ("default", "exact", "", 0.0)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1", "x: is not a known name; use one of: namespace, packs, connections, routes"),
        ("routes = 1", "routes: must be a table"),
        ('namespace = "A b"', "namespace: 'A b' must be 1 to 64 characters of a-z, 0-9, - and _"),
        ("[packs.p]\ncolour = 1", "packs.p.colour: is not a known name; use one of: class, version, settings, endpoint"),
        ("[packs.p]\nversion = 1", "packs.p.version: must be text in quotes"),
        ('[packs.p.endpoint."A b"]', "packs.p.endpoint.A b: 'A b' must be"),
        ('[packs.p.endpoint.e]\nunverified = "drop"', "packs.p.endpoint.e.unverified: must be 'keep' or 'refuse'"),
        ("[packs.p.endpoint.e]\nsecrets = []", "packs.p.endpoint.e.secrets: is empty; give at least one entry"),
        ('[packs.p.endpoint.e]\nsecrets = ["env:A", "env:B", "env:C"]', "packs.p.endpoint.e.secrets: must have at most 2 entries"),
        ("[packs.p.endpoint.e]\nmax_body_bytes = 10", "packs.p.endpoint.e.max_body_bytes: must be at least 1024"),
        (
            '[packs.p.endpoint.e]\npublic_url = "hooks.example.com"',
            "packs.p.endpoint.e.public_url: 'hooks.example.com' must be a URL",
        ),
        (
            '[packs.p.endpoint.e]\npublic_url = "https://h?x=1"',
            "packs.p.endpoint.e.public_url: 'https://h?x=1' must not contain ? or #",
        ),
        ('[connections.c]\nurl = "file:///etc/passwd"', "connections.c.url: 'file:///etc/passwd' must be a URL"),
        ('[connections.c]\nurl = "http://u:p@h"', "connections.c.url: must not contain a user or password"),
        ('[connections.c]\nurl = "http://h:99999"', "connections.c.url: 'http://h:99999' is not a valid URL"),
        (
            '[connections.c]\nurl = "http://h"\nsecret = "env:A"\nsecrets = ["env:B"]',
            "connections.c: secret and secrets are both set",
        ),
        (ROUTE.replace('"*"', ""), "routes.r.on: is empty; give at least one entry"),
        (ROUTE.replace('"*"', '"a", "a"'), "routes.r.on: contains an entry twice; remove one"),
        (ROUTE.replace('"*"', '"a*b"'), "routes.r.on.[1]: 'a*b' must be a provider kind"),
        (ROUTE.replace("per_event", "latest"), "routes.r.mode: must be 'projection' or 'per_event'"),
        (ROUTE + 'settle = "5s"', "routes.r: settle is only for projection routes"),
        (ROUTE + "settle = 5", 'routes.r.settle: must be a duration in quotes, e.g. "5s"'),
        (
            ROUTE + 'target_lane = "invoice:{x}"',
            "routes.r.target_lane: 'invoice:{x}' is not valid; use at most 255 characters",
        ),
        (ROUTE + 'mask = ["email"]', "routes.r.mask.[1]: 'email' is not a valid mask"),
        (ROUTE + "retry = { attempts = 0 }", "routes.r.retry.attempts: must be at least 1"),
        (ROUTE + "retry = { factor = 0.5 }", "routes.r.retry.factor: must be a number from 1 to 100"),
        (ROUTE + "retry = { factor = nan }", "routes.r.retry.factor: must be a number from 1 to 100"),
        (ROUTE + "retry = { factor = true }", "routes.r.retry.factor: must be a number from 1 to 100"),
        (ROUTE + 'retry = { base = "0s" }', "routes.r.retry: base (0s) is too short; write 1s or more, as no retry comes sooner"),
        (ROUTE + 'retry = { base = "2h" }', "routes.r.retry: base (2h) must not be longer than cap (1h)"),
        (ROUTE + 'limit = { name = "x", rate = "100" }', "routes.r.limit.rate: '100' is not a valid rate"),
        (ROUTE + 'limit = { name = "x" }', "routes.r.limit: sets no limit; add a rate"),
        (ROUTE + 'limit = { name = "x", concurrency = 0 }', "routes.r.limit.concurrency: must be at least 1"),
        (ROUTE + 'limit = { name = "x", concurrency = "8" }', "routes.r.limit.concurrency: must be a whole number"),
        (ROUTE + 'source_id_case = "lower"', "routes.r.source_id_case: must be 'exact' or 'fold'"),
        (ROUTE.replace('flow = "log"\n', ""), "routes.r.flow: is missing"),
    ],
)
def test_each_fault_is_one_line_that_names_the_place_and_the_way_out(text, line):
    (found,) = problems(text)
    assert found.startswith(line)


def test_all_faults_of_a_file_are_told_at_once():
    assert len(problems(ROUTE.replace("per_event", "x").replace('"log"', "1") + "colour = 2")) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a = " + "{b=" * 3000 + "1" + "}" * 3000, "nested too deeply"),
        ("a = " + "9" * 5000, "not TOML"),
    ],
)
def test_a_text_that_its_reader_cannot_take_is_a_fault_of_the_file(text, said):
    with pytest.raises(BadConfiguration, match=said):
        parse(text)


def test_text_that_is_not_toml_says_where():
    (found,) = problems("a = [")
    assert found.startswith("not TOML: ")


@pytest.mark.parametrize("text", ["s3cret", "S3CRET:s3cret", "env:", ":s3cret", "vault:s3cret"])
def test_a_bare_secret_is_refused_and_never_repeated(text):
    (found,) = problems(f'[packs.p.endpoint.e]\nsecrets = ["{text}"]')
    assert "must be env:NAME, file:/path or plain:VALUE" in found
    assert "s3cret" not in found.lower()


def test_secret_references_are_resolved_from_environment_file_and_plain(monkeypatch, tmp_path):
    monkeypatch.setenv("A_SECRET", "from-env")
    path = tmp_path / "secret"
    path.write_text("from file \n")
    assert resolve("env:A_SECRET") == "from-env"
    assert resolve(f"file:{path}") == "from file "
    assert resolve("plain:a:b") == "a:b"


def test_a_secret_file_of_a_windows_editor_is_its_one_line(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"\xef\xbb\xbfs3cret\r\n")
    assert resolve(f"file:{path}") == "s3cret"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s3cret\ns3cret2", "has 2 lines; a secret is a single line"),
        ("s3cret\r\n\r\nold", "has 3 lines"),
        ("\nS3cret", "has 2 lines"),
        ("\ufeff\ufeffs3cret", "contains an invisible or control character"),
        ("s3cret\u200b", "contains an invisible or control character"),
        ("s3\tcret", "contains an invisible or control character"),
    ],
)
def test_a_secret_with_what_an_editor_added_is_refused_and_never_repeated(monkeypatch, tmp_path, text, reason):
    path = tmp_path / "secret"
    path.write_text(text, encoding="utf-8", newline="")
    monkeypatch.setenv("A_SECRET", text)
    for reference, what in ((f"file:{path}", "file"), ("env:A_SECRET", "A_SECRET"), (f"plain:{text}", "the secret")):
        with pytest.raises(ValueError, match=reason) as refused:
            resolve(reference)
        assert what in str(refused.value)
        assert "s3" not in str(refused.value).lower()


def test_a_secret_file_in_another_encoding_says_which_one_is_needed(tmp_path):
    path = tmp_path / "secret"
    path.write_text("s3cret", encoding="utf-16")
    with pytest.raises(ValueError, match="is not UTF-8 text; save it with the encoding UTF-8"):
        resolve(f"file:{path}")


def test_a_configuration_file_of_a_windows_editor_is_read(tmp_path):
    path = tmp_path / "crm.toml"
    path.write_bytes(b"\xef\xbb\xbf" + b'[packs.generic]\r\nversion = "1"\r\n')
    assert read(str(path)).packs["generic"].version == "1"
    path.write_text("[packs.generic]\n", encoding="utf-16")
    with pytest.raises(BadConfiguration, match=r"crm\.toml is not UTF-8 text; save it with the encoding UTF-8"):
        read(str(path))


def test_a_missing_or_empty_secret_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("A_SECRET", raising=False)
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for reference, reason in [
        ("env:A_SECRET", "environment variable A_SECRET is not set"),
        (f"file:{empty}", "is empty"),
        (f"file:{tmp_path / 'absent'}", "cannot be read"),
    ]:
        with pytest.raises(ValueError, match=reason):
            resolve(reference)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(BadConfiguration, match=r"absent\.toml cannot be read"):
        read(str(tmp_path / "absent.toml"))
