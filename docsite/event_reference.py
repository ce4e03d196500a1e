"""The reference of events: every type there is, with its fields, from their shapes in the HTTP
interface."""

from collections.abc import Iterator
from inspect import getdoc
from typing import get_args, get_type_hints

from interfaces.http.runs.event_views import EventView, RunEventView
from interfaces.http.workflow_runs.event_views import WorkflowEventView, WorkflowStreamEnd, WorkflowStreamItem

_INTRODUCTION = """# Events

What happens in a run is stored as events, numbered from 1 without gaps (`seq`). They come as server-sent events from `/v1/runs/stream` and
`/v1/runs/{id}/stream`, and as a list from `/v1/runs/{id}/events`. An interrupted stream resumes after the event that `Last-Event-ID` names.

```text
id: 12
event: run.completed
data: {"seq": 12, "type": "run.completed", "run_id": "run_…", "at": "2026-01-01T12:00:00.000000Z"}

event: end
data: {"type": "end", "status": "completed"}
```

Every event has `seq`, `type`, `run_id` and `at`; the [HTTP API](api.md#shapes) describes the fields of each. `end` closes a stream and is not stored: a run that ended, or waits, or was left, says so in
`status`. A comment every 15 seconds keeps connections open.
"""
_WORKFLOWS = """## Workflow runs

From `/v1/workflow-runs/{id}/stream`, in the same form with `workflow_run_id` in place of `run_id`.
"""


def event_page() -> str:
    """The page, in Markdown."""
    return "\n".join(
        [
            _INTRODUCTION,
            "## Runs\n",
            *_table(RunEventView, EventView),
            _WORKFLOWS,
            *_table(WorkflowStreamItem, WorkflowEventView),
        ]
    )


def fields_by_type(union: object, base: type) -> dict[str, tuple[str, ...]]:
    """The own fields of each type of event."""
    return {kind: fields for kind, fields, _ in _events(union, base)}


def _events(union: object, base: type) -> Iterator[tuple[str, tuple[str, ...], str]]:
    for event in get_args(union)[1].members:
        if event is WorkflowStreamEnd:
            continue
        hints = get_type_hints(event)
        own = tuple(name for name in hints if name not in {*get_type_hints(base), "type"})
        yield get_args(hints["type"])[0], own, " ".join((getdoc(event) or "").split())


def _table(union: object, base: type) -> Iterator[str]:
    yield "| event | fields | says |\n|---|---|---|"
    for kind, fields, meaning in _events(union, base):
        yield f"| `{kind}` | {', '.join(f'`{name}`' for name in fields)} | {meaning} |"
    yield ""
