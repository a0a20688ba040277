"""`receive ENDPOINT FILE…`: deliveries from files, stored as HTTP would, without a signature."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from connectors.models import Receipt
from tests.support.ingress import open_endpoint

pytestmark = pytest.mark.usefixtures("database")


def run(*arguments: str) -> tuple[dict[str, Any], int]:
    out = io.StringIO()
    try:
        call_command("receive", *arguments, "--json", stdout=out)
    except SystemExit as end:
        return json.loads(out.getvalue()), int(end.code or 0)
    return json.loads(out.getvalue()), 0


def lines(path: Path, *texts: str | bytes) -> str:
    path.write_bytes(b"\n".join(text if isinstance(text, bytes) else text.encode() for text in texts) + b"\n")
    return str(path)


def bodies() -> list[bytes]:
    return [bytes(row.body) for row in Receipt.objects.order_by("id")]


def test_raw_bodies_and_envelopes(tmp_path: Path) -> None:
    open_endpoint("github", "repo")
    file = lines(
        tmp_path / "a.jsonl",
        '{"zen": "x",  "n": 1.10}',
        '{"headers": {"X-GitHub-Event": "ping", "X-GitHub-Delivery": "g1"}, "body": {"id" :  1.10, "t":"\\u00e9"} }',
        "",
        '{"headers": {"X-GitHub-Event": "push"}, "body": "payload=%7B%7D"}',
        '{"body": {"only": "a body member"}}',
    )
    answer, code = run("default/repo", file)
    assert (answer["received"], answer["duplicates"], answer["refused"], code) == (4, 0, [], 0)
    assert bodies() == [
        b'{"zen": "x",  "n": 1.10}',
        b'{"id" :  1.10, "t":"\\u00e9"}',
        b"payload=%7B%7D",
        b'{"body": {"only": "a body member"}}',
    ]
    second = Receipt.objects.get(idempotency_key="g1")
    assert json.loads(second.headers) == {"x-github-event": "ping", "x-github-delivery": "g1"}
    assert (second.state, second.url) == ("pending", "https://hooks.example.com/ingress/default/repo")
    assert answer["receipts"] == [str(row.id) for row in Receipt.objects.order_by("id")]


def test_duplicates_and_conflicts_are_told_apart(tmp_path: Path) -> None:
    open_endpoint(slug="shop", settings={"delivery_id": "id"})
    file = lines(tmp_path / "a.jsonl", '{"id":"e1","v":1}', '{"id":"e1","v":1}', '{"id":"e1","v":2}')
    answer, code = run("shop", file)
    assert (answer["received"], answer["duplicates"], code) == (1, 1, 1)
    assert [(one["id"], one["code"]) for one in answer["refused"]] == [(f"{file}:3", "conflict")]
    assert run("shop", lines(tmp_path / "b.jsonl", '{"id":"e1","v":1}'))[1] == 0


def test_bad_lines_are_named_and_the_others_are_kept(tmp_path: Path) -> None:
    open_endpoint(slug="shop")
    file = lines(
        tmp_path / "a.jsonl",
        '{"id": 1}',
        "{",
        '{"a": NaN}',
        b"\xff",
        '{"headers": {"x": 1}, "body": {}}',
        '{"headers": {}, "body": "\\udc88"}',
        '{"id": 2}',
    )
    answer, code = run("shop", file)
    assert (answer["received"], code) == (2, 1)
    assert [one["id"] for one in answer["refused"]] == [f"{file}:{number}" for number in (2, 3, 4, 5, 6)]
    assert {one["code"] for one in answer["refused"]} == {"bad_line"}
    assert "NaN" in answer["refused"][1]["reason"]


def test_a_body_over_the_limit_is_refused(tmp_path: Path) -> None:
    open_endpoint(slug="shop", limits={"max_body_bytes": 12})
    answer, code = run("shop", lines(tmp_path / "a.jsonl", '{"id": 1}', '{"id": 1234567}'))
    assert (answer["received"], answer["refused"][0]["code"], code) == (1, "too_large", 1)


@pytest.mark.parametrize("arguments", [("shop",), ("shop", "-")])
def test_standard_input(arguments: tuple[str, ...]) -> None:
    open_endpoint(slug="shop")
    with mock.patch("sys.stdin", mock.Mock(buffer=io.BytesIO(b'\xef\xbb\xbf{"id": 1}\r\n{"id": 2}'))):
        assert run(*arguments)[0]["received"] == 2
    assert bodies() == [b'{"id": 1}', b'{"id": 2}']


def test_an_endpoint_that_is_not_there_ends_with_1() -> None:
    answer, code = run("nope", "-")
    assert (answer["refused"][0]["code"], code) == ("not_found", 1)


def test_a_file_that_is_not_there_stops_before_anything_is_stored(tmp_path: Path) -> None:
    open_endpoint(slug="shop")
    good = lines(tmp_path / "a.jsonl", '{"id": 1}')
    with pytest.raises(CommandError, match="is not a file") as stopped:
        call_command("receive", "shop", good, str(tmp_path / "missing.jsonl"))
    assert stopped.value.returncode == 2
    assert Receipt.objects.count() == 0


def test_a_disabled_endpoint_is_refused() -> None:
    open_endpoint(slug="shop", state="disabled")
    with pytest.raises(CommandError, match="disabled"):
        call_command("receive", "shop", "-")
