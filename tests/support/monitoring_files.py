"""Reads the examples under docs/monitoring, and what they ask of which metric."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ops_ui.config.environment import CHECKOUT

FOLDER = CHECKOUT / "docs" / "monitoring"
PAGE = CHECKOUT / "docs" / "monitoring.md"

OF_PROMETHEUS = {"le", "instance", "job"}
"""Labels that no process of ours sets, or that belong to every histogram."""


@dataclass(frozen=True)
class Expression:
    """One PromQL text, and the labels that its title or legend shows."""

    where: str
    text: str
    shown: frozenset[str]


@dataclass(frozen=True)
class Use:
    """One metric in an expression: the labels that it is selected by, with the values that must exist."""

    metric: str
    labels: frozenset[str]
    values: frozenset[tuple[str, str]]


def rules() -> list[dict[str, str]]:
    """The rules of alerts.yml. Raises AssertionError for a line of another form: the file is written in a simple part of YAML."""
    found: list[dict[str, str]] = []
    for line in (FOLDER / "alerts.yml").read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("#") or text in ("groups:", "- name: headrace", "rules:", "annotations:"):
            continue
        match = re.fullmatch(r"(- )?(alert|expr|for|labels|summary): (.+)", text)
        assert match is not None, line
        if match[1]:
            found.append({})
        assert match[2] not in found[-1], line
        found[-1][match[2]] = match[3]
    return found


def panels() -> list[dict[str, Any]]:
    """The panels of grafana.json that show something."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def dashboard() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    return parsed


def expressions() -> Iterator[Expression]:
    """Of both files."""
    for rule in rules():
        yield Expression(rule["alert"], rule["expr"], frozenset(re.findall(r"\$labels\.(\w+)", rule["summary"])))
    for panel in panels():
        for target in panel["targets"]:
            yield Expression(panel["title"], target["expr"], frozenset(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])))


def uses(text: str) -> list[Use]:
    """The metrics of ours in an expression."""
    found = []
    for name, selector in re.findall(r"\b(headrace_\w+)(?:\{([^}]*)\})?", text):
        matchers = re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', selector or "")
        values = {(label, value) for label, sign, value in matchers if sign == "="}
        found.append(Use(name, frozenset(label for label, _, _ in matchers), frozenset(values)))
    return found


def grouped_by(text: str) -> list[list[str]]:
    """The labels of each `by (…)`."""
    return [re.findall(r"\w+", inner) for inner in re.findall(r"\bby \(([^)]*)\)", text)]


def documented() -> dict[str, frozenset[str]]:
    """The table of metrics in the page: its labels by name."""
    rows = re.findall(r"^\| `(headrace_\w+)` \|([^|]*)\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: frozenset(re.findall(r"\w+", labels)) for name, labels in rows}
