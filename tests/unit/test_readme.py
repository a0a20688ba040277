"""What the README tells a user to write is what the product reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from connectors.configuration import parse
from ops_ui.environment import SETTINGS

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.splitlines()[0][2:15] for example in EXAMPLES])
def test_each_configuration_is_valid(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"env:(\w+)", example):
        monkeypatch.setenv(name, "whsec_" + "A" * 44)
    assert parse(example).routes


def test_the_table_of_settings_is_complete() -> None:
    rows = re.findall(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|", README, re.MULTILINE)
    assert sorted(re.findall(r"[A-Z_]+", " ".join(rows))) == sorted(SETTINGS)
