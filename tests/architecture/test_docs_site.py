"""The documentation's site has every page in its navigation, and what is written from the code is
current."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from docsite.event_reference import event_page, fields_by_type
from docsite.pages import as_published, decisions, figures, moved_into_docs
from docsite.settings_reference import SETTINGS_PAGE, settings_page
from domain.runs.events import RunEventType
from domain.workflows.run import WorkflowEventType
from interfaces.http.runs.event_views import EventView, RunEventView
from interfaces.http.workflow_runs.event_views import WorkflowEventView, WorkflowStreamItem
from tests.architecture.published_files import tracked_files

ROOT = Path(__file__).resolve().parents[2]
SAVED_RUNS = ROOT / "tests" / "fixtures" / "saved_runs"
LISTED_ELSEWHERE = ("docs/adr/",)
RUN_EVENTS = fields_by_type(RunEventView, EventView)


def pages_of(entries: list[Any]) -> set[str]:
    """Every page that a navigation names."""
    found: set[str] = set()
    for entry in entries:
        for target in entry.values():
            found |= pages_of(target) if isinstance(target, list) else {target}
    return found


def test_every_page_is_in_the_navigation() -> None:
    navigation = pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    pages = {
        path.as_posix().removeprefix("docs/")
        for path in tracked_files(ROOT)
        if path.as_posix().startswith("docs/")
        and path.suffix == ".md"
        and not path.as_posix().startswith(LISTED_ELSEWHERE)
    }
    assert pages - navigation == set(), "add them to `nav` in mkdocs.yml"


def test_the_committed_reference_of_settings_is_current() -> None:
    assert (ROOT / SETTINGS_PAGE).read_text(encoding="utf-8") == settings_page(), "`make settings` renews it"


def test_the_reference_of_events_has_every_kind() -> None:
    page = event_page()
    assert RUN_EVENTS.keys() == {*RunEventType}
    assert fields_by_type(WorkflowStreamItem, WorkflowEventView).keys() == {*WorkflowEventType}
    assert all(f"`{kind}`" in page for kind in (*RunEventType, *WorkflowEventType))


def stored_events() -> list[tuple[str, dict[str, object]]]:
    """The events of the newest saved runs: kind, and its own fields."""
    newest = max(SAVED_RUNS.glob("*.json"))
    answers = json.loads(newest.read_text(encoding="utf-8"))["answers"]
    return [
        (event["type"], {name: event[name] for name in event.keys() - {"seq", "type", "run_id", "at"}})
        for path, answer in answers.items()
        if "/events" in path
        for event in answer["data"]
    ]


def test_stored_events_have_no_field_that_the_reference_lacks() -> None:
    events = stored_events()
    assert len({kind for kind, _ in events}) >= 10
    assert [(kind, fields) for kind, fields in events if not fields.keys() <= {*RUN_EVENTS[kind]}] == []


@pytest.mark.parametrize(
    ("link", "inside"),
    [
        ("[a guide](docs/guides/policy.md#rules)", "[a guide](guides/policy.md#rules)"),
        ("[decisions](docs/adr)", "[decisions](decisions.md)"),
        ("[elsewhere](https://example.com/docs/x)", "[elsewhere](https://example.com/docs/x)"),
        ("[the code](src/domain)", "the code"),
        ("[how](CONTRIBUTING.md)", "[how](CONTRIBUTING.md)"),
    ],
)
def test_links_of_pages_at_the_root_lead_to_the_same_within_the_site(link: str, inside: str) -> None:
    assert moved_into_docs(link, ROOT) == inside


def test_home_shows_the_runs_that_were_measured_last() -> None:
    table = figures((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"))
    header, *rows = table.splitlines()
    assert "runs/s" in header
    assert len(rows) > 2
    assert "<!-- figures -->" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_a_page_is_published_without_marks_and_beside_the_examples() -> None:
    written = "<!-- not run: one\ntwo -->\n<!-- file: a -->\n```sh\n[e](../../examples/README.md#x)\n"
    assert as_published(written) == "```sh\n[e](../examples.md#x)\n"


def test_every_decision_is_listed() -> None:
    page = decisions(ROOT / "docs" / "adr")
    assert all(path.name in page for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
