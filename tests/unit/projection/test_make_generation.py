"""Flows are tested as plain functions of a made generation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connectors.flows.log import log
from projection.facts import PER_EVENT
from projection.testing import make_generation, make_input, make_route


def test_inputs_are_in_order_and_the_last_one_is_selected() -> None:
    generation = make_generation('{"a": 1.10}', {"a": 2}, source=("contact", "42"), attempt=3)
    assert [each.ordinal for each in generation.inputs] == [1, 2]
    assert generation.inputs[0].payload == '{"a": 1.10}'
    assert generation.selected is generation.inputs[-1]
    assert (generation.source.type, generation.source.id, generation.attempt) == ("contact", "42", 3)
    assert generation.deadline > datetime.now(UTC)


def test_a_made_input_can_be_a_replay_with_the_ordinal_of_the_first_fact() -> None:
    generation = make_generation(make_input({"a": 1}, ordinal=7, replay_of_event_id=3))
    assert (generation.selected.ordinal, generation.selected.replay_of_event_id) == (7, 3)


def test_the_same_inputs_make_the_same_work_id_and_another_route_another() -> None:
    assert make_generation("{}").work_id == make_generation("{}").work_id
    assert make_generation("{}").work_id != make_generation("{}", route=make_route(version=2)).work_id


def test_a_per_event_route_has_no_projection_key() -> None:
    assert make_generation(route=make_route(mode=PER_EVENT)).projection_key is None


def test_commit_works_once_for_a_plain_flow_and_is_refused_for_an_atomic_one() -> None:
    plain = make_generation()
    with plain.commit():
        assert not plain.completed
    assert plain.completed
    with pytest.raises(RuntimeError, match="plain flows"), make_generation(atomic=True).commit():
        pass


def test_the_log_flow_writes_ids_and_counts_but_no_payload(capsys: pytest.CaptureFixture[str]) -> None:
    generation = make_generation({"email": "jane@example.com"}, {"email": "joe@example.com"}, source=("contact", "42"))
    log(generation)
    text = capsys.readouterr().err
    line = json.loads(text)
    assert (line["event"], line["work_id"], line["count"]) == ("generation", generation.work_id, 2)
    assert line["source"] == "contact:42"
    assert "example.com" not in text


def test_the_plugin_offers_the_function_as_a_fixture_without_a_database(tmp_path: Path) -> None:
    test = tmp_path / "test_flow.py"
    test.write_text("def test_it(make_generation):\n    assert make_generation('{}').attempt == 1\n", encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:django", "-p", "projection.testing", "-c", os.devnull, str(test)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
