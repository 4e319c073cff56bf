"""The dashboard, the alert rules and the table of docs/monitoring.md fit `/metrics`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from runs.services.metrics.gauges import GAUGES
from runs.store.metric_counters import COUNTERS, HISTOGRAMS

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD = json.loads((DOCS / "monitoring/grafana-dashboard.json").read_text())
ALERTS = yaml.safe_load((DOCS / "monitoring/alerts.yml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

METRIC = re.compile(r"\b(agentsite_\w+)(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\b(?:by|on|without) \(([^)]*)\)")
OF_PROMETHEUS = {"job", "instance"}


def known_metrics() -> dict[str, set[str]]:
    """Return the labels of each metric, by the names that expressions use."""
    found = {f"agentsite_{one.name}": set(one.labels) for one in GAUGES}
    found |= {f"agentsite_{one.name}_total": set(one.labels) for one in COUNTERS}
    for one in HISTOGRAMS:
        found[f"agentsite_{one.name}_bucket"] = {*one.labels, "le"}
        for part in ("sum", "count"):
            found[f"agentsite_{one.name}_{part}"] = set(one.labels)
    return found


def find_mistakes(expression: str) -> list[str]:
    """Return metrics that do not exist, and labels that they do not have."""
    known, found, labels = known_metrics(), list[str](), set(OF_PROMETHEUS)
    for name, selectors in METRIC.findall(expression):
        if name not in known:
            found.append(f"no metric {name}")
            continue
        labels |= known[name]
        used = set(re.findall(r"(\w+)\s*(?:=|!)", selectors))
        found += [f"{name} has no {one}" for one in used - known[name] - OF_PROMETHEUS]
    for names in GROUPING.findall(expression):
        used = {name.strip() for name in names.split(",")}
        found += [f"nothing has {one}" for one in used - labels]
    return found


def queries(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_shows_metrics_that_exist(panel):
    assert [find_mistakes(one) for one in queries(panel)] == [[]] * len(queries(panel))
    assert panel["description"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_uses_metrics_that_exist(rule):
    assert find_mistakes(rule["expr"]) == []
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"].keys() == {"summary", "description"}


def test_labels_in_the_text_of_a_rule_survive_its_grouping():
    for rule in RULES:
        shown = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        kept = set(re.findall(r"\w+", " ".join(GROUPING.findall(rule["expr"]))))
        assert shown <= (kept or {"provider", "model"}), rule["alert"]


@pytest.mark.parametrize(
    ("expression", "mistakes"),
    [
        ("agentsite_wokers == 0", ["no metric agentsite_wokers"]),
        ('agentsite_runs{stauts="queued"}', ["agentsite_runs has no stauts"]),
        ("sum by (tool) (agentsite_runs)", ["nothing has tool"]),
        ("agentsite_runs_finished", ["no metric agentsite_runs_finished"]),
    ],
)
def test_a_planted_mistake_is_found(expression, mistakes):
    assert find_mistakes(expression) == mistakes


def test_no_two_panels_overlap():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    places = [
        (x, y)
        for at in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]

    assert len(set(ids)) == len(ids)
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) == 23


def test_each_metric_has_a_panel():
    shown = "".join(query for panel in PANELS for query in queries(panel))

    assert [one.name for one in GAUGES if f"agentsite_{one.name}{{" not in shown] == []
    for one in COUNTERS:
        assert f"agentsite_{one.name}_total{{" in shown
    for one in HISTOGRAMS:
        assert f"agentsite_{one.name}_bucket{{" in shown


def rows() -> list[str]:
    """Return the table of docs/monitoring.md as the code has it."""
    kinds = [("gauge", "", GAUGES), ("counter", "_total", COUNTERS)]
    kinds.append(("histogram", "", HISTOGRAMS))
    return [
        f"| `agentsite_{one.name}{end}` | {kind} | "
        f"{', '.join(f'`{label}`' for label in one.labels)} | {one.help} |"
        for kind, end, metrics in kinds
        for one in metrics
    ]


def test_the_page_lists_every_metric():
    page = (DOCS / "monitoring.md").read_text().splitlines()

    assert [line for line in page if line.startswith("| `agentsite_")] == rows()
