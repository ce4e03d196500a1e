"""The dashboard, the alerts and the guide name metrics that exist, and the guide names them all."""

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from infrastructure.metrics.instruments import Instruments

DOCS = Path(__file__).parents[2] / "docs"
_NAME = re.compile(r"\bdragoman_[a-z_]+")
_PARTS = ("_bucket", "_count", "_sum", "_total", "_created")


def families() -> set[str]:
    """Every metric by the name it has in the exposition, without the endings of its parts."""
    return {
        family.name for family in Instruments(version="1").registry.collect() if family.name.startswith("dragoman_")
    }


def named(text: str) -> set[str]:
    """The metrics that a text names, without the endings of their parts."""
    return {re.sub(f"({'|'.join(_PARTS)})$", "", name) for name in _NAME.findall(text)}


@pytest.mark.requirement("G2")
def test_the_dashboard_and_the_alerts_ask_for_metrics_that_exist() -> None:
    dashboard = json.loads((DOCS / "monitoring" / "grafana-dashboard.json").read_text())
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    rules = yaml.safe_load((DOCS / "monitoring" / "alerts.yaml").read_text())["groups"][0]["rules"]
    asked += " ".join(rule["expr"] for rule in rules)
    assert named(asked)
    assert named(asked) <= families()


@pytest.mark.requirement("G2")
def test_the_dashboard_shows_every_metric() -> None:
    assert named((DOCS / "monitoring" / "grafana-dashboard.json").read_text()) == families()


@pytest.mark.requirement("G2")
def test_no_label_grows_with_what_users_store() -> None:
    """What is labelled takes memory for ever. Models are bounded (`MAX_MODELS`), paths are those of
    routes."""
    labels = {
        label
        for collector in set(Instruments(version="1").registry._collector_to_names)
        if isinstance(collector, MetricWrapperBase)
        for label in collector._labelnames
    }
    assert labels == {"status", "model", "outcome", "kind", "type", "method", "path", "state", "version"}


@pytest.mark.requirement("G2")
def test_the_guide_explains_every_metric_and_no_other() -> None:
    assert named((DOCS / "guides" / "monitoring.md").read_text()) == families()
