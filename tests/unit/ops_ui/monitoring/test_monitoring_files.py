"""The examples of docs/monitoring are what Prometheus and Grafana read, and ask for what this code can count."""

from __future__ import annotations

import re

import pytest
from prometheus_client import REGISTRY

from connectors.demo import receiver
from connectors.ingress import metrics
from ops_ui.config.environment import SETTINGS
from ops_ui.monitoring import alerts, measures, progress
from ops_ui.monitoring import metrics as console_metrics
from tests.support import monitoring_files
from tests.support.monitoring_files import OF_PROMETHEUS, PAGE, Expression, documented, grouped_by, uses

REGISTERED_BY = (metrics, receiver, measures, console_metrics)
NOT_FOR_A_DASHBOARD = {"headrace_demo_forwarded_total"}
SUFFIXES = ("_bucket", "_count", "_sum")
EXPRESSIONS = list(monitoring_files.expressions())


def family(name: str) -> str:
    """The documented metric that a series belongs to."""
    for suffix in SUFFIXES:
        if name.removesuffix(suffix) in documented():
            return name.removesuffix(suffix)
    return name


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda one: f"{one.where} {one.text[:30]}")
def test_an_expression_asks_for_documented_metrics_and_their_labels(expression: Expression) -> None:
    known = documented()
    everything: set[str] = set(OF_PROMETHEUS)
    for use in uses(expression.text):
        labels = known[family(use.metric)]
        assert use.labels <= labels | OF_PROMETHEUS
        everything |= labels
    for group in grouped_by(expression.text):
        assert set(group) <= everything
    groups = grouped_by(expression.text)
    shown_by = set(groups[-1]) | OF_PROMETHEUS if groups else everything
    assert expression.shown <= shown_by


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda one: f"{one.where} {one.text[:30]}")
def test_an_expression_is_whole(expression: Expression) -> None:
    assert expression.text.count("(") == expression.text.count(")")
    assert ": " not in expression.text, "YAML would read a key"
    assert " #" not in expression.text, "YAML would read a comment"


def test_every_metric_is_shown_or_alerted_on() -> None:
    asked = {family(use.metric) for expression in EXPRESSIONS for use in uses(expression.text)}
    assert set(documented()) - asked == NOT_FOR_A_DASHBOARD


def test_every_rule_is_named_once_and_says_how_grave_it_is() -> None:
    rules = monitoring_files.rules()
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 10
    assert {rule["labels"] for rule in rules} == {"{severity: page}", "{severity: warn}"}
    assert all(rule["summary"][0] == rule["summary"][-1] == '"' for rule in rules)


def test_the_panels_of_the_dashboard_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in monitoring_files.dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [panel["id"] for panel in monitoring_files.dashboard()["panels"]]
    assert len(set(ids)) == len(ids)


def test_what_is_documented_is_registered_under_these_labels() -> None:
    """Counters and histograms; the gauges are of the scrape (tests/acceptance/test_monitoring.py)."""
    ours = {
        name: frozenset(metric._labelnames)
        for metric in set(REGISTRY._names_to_collectors.values())
        if hasattr(metric, "_labelnames")
        for name in [metric._name + ("_total" if metric._type == "counter" else "")]
        if name.startswith("headrace_")
    }
    assert len(REGISTERED_BY) <= len(ours)
    assert {name: labels for name, labels in documented().items() if name in ours} == ours


def test_the_page_tells_every_reason_alert_and_setting_there_is() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for code in ("no_router", "no_worker", "router_stuck", "workers_stuck", "receipts_too_old", "work_too_old", *alerts.NAMES):
        assert f"`{code}`" in page
    assert (
        f"{progress.STUCK_ROUTER_SECONDS // 60} minutes, or no attempt has ended for {progress.STUCK_WORKERS_SECONDS // 60}" in page
    )
    named = set(re.findall(r"HEADRACE_([A-Z_]+)", page))
    assert named <= set(SETTINGS)
    assert {name for name in SETTINGS if name.startswith("ALERT_")} <= named
