"""The usage report over HTTP."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from domain.audit.event import AuditAction
from domain.runs.usage import ModelSpending, ModelUsage
from tests.builders import KEY, ORG, OTHER_ORG, START, a_run, an_audit_event
from tests.integration.http.service import OTHER_ADMIN, Service, paths_of, problem_of

USED = ModelUsage(input_tokens=100, output_tokens=20, cached_tokens=40, cost_usd=Decimal("0.0015"))


def book(service: Service) -> None:
    """Two calls of one model yesterday, one today; and one of another organization."""
    run = replace(a_run(), requested_by=KEY)
    theirs = replace(run, organization_id=OTHER_ORG)
    assert run.organization_id == ORG
    for owner, days in ((run, 1), (run, 1), (run, 0), (theirs, 0)):
        at = START - timedelta(days=days)
        service.state.spent.append((owner, ModelSpending(model="openai:gpt-5-mini", usage=USED, at=at)))


@pytest.mark.requirement("A10")
async def test_usage_is_reported_by_day_agent_and_model(service: Service) -> None:
    book(service)
    answer = await service.call("GET", "/v1/usage")
    assert answer.status_code == 200
    today, yesterday = answer.json()["data"]
    assert today["day"] == START.date().isoformat()
    assert yesterday == {
        "day": (START - timedelta(days=1)).date().isoformat(),
        "agent_id": a_run().agent_id,
        "model": "openai:gpt-5-mini",
        "started_by": None,
        "tool": None,
        "tool_calls": None,
        "failed_tool_calls": None,
        "blocked_tool_calls": None,
        "tool_ms": None,
        "model_calls": 2,
        "input_tokens": 200,
        "output_tokens": 40,
        "cached_tokens": 80,
        "reasoning_tokens": 0,
        "cost_usd": 0.003,
        "unpriced_calls": 0,
        "estimated_calls": 0,
    }
    theirs = (await service.call("GET", "/v1/usage", token=OTHER_ADMIN)).json()["data"]
    assert [entry["model_calls"] for entry in theirs] == [1]


@pytest.mark.requirement("A10")
async def test_usage_is_summed_over_what_is_not_asked_for(service: Service) -> None:
    book(service)
    [by_agent] = (await service.call("GET", "/v1/usage?by=agent")).json()["data"]
    assert (by_agent["day"], by_agent["model"], by_agent["model_calls"]) == (None, None, 3)
    by_both = (await service.call("GET", "/v1/usage?by=agent&by=day")).json()["data"]
    assert [entry["model_calls"] for entry in by_both] == [1, 2]
    [by_person] = (await service.call("GET", f"/v1/usage?by=person&started_by={KEY}")).json()["data"]
    assert (by_person["started_by"], by_person["day"], by_person["model_calls"]) == (KEY, None, 3)
    one_day = (await service.call("GET", f"/v1/usage?since={START.date()}&until={START.date()}")).json()["data"]
    assert [entry["model_calls"] for entry in one_day] == [1]


@pytest.mark.requirement("A10", "U6")
async def test_calls_of_runs_and_gateway_sessions_are_summed_by_tool(service: Service) -> None:
    for tool, action in (("read", AuditAction.TOOL_EXECUTED), ("read", AuditAction.TOOL_FAILED)):
        call = replace(an_audit_event(1), action=action, tool=tool, duration_ms=250, at=START)
        service.state.sealed_entries += [call, replace(call, tool="write", at=START - timedelta(days=1))]
    by_tool = (await service.call("GET", "/v1/usage?by=tool")).json()["data"]
    figures = ("day", "tool", "tool_calls", "failed_tool_calls", "blocked_tool_calls", "tool_ms", "model_calls")
    assert [tuple(entry[name] for name in figures) for entry in by_tool] == [
        (None, "read", 2, 1, 0, 500, 0),
        (None, "write", 2, 1, 0, 500, 0),
    ]
    today = str(START.date())
    of_day = (await service.call("GET", f"/v1/usage?by=tool&by=day&tool=read&since={today}")).json()["data"]
    assert [(entry["day"], entry["tool"]) for entry in of_day] == [(today, "read")]
    assert (await service.call("GET", "/v1/usage?tool=write")).json()["data"] == by_tool[1:]
    assert (await service.call("GET", "/v1/usage?by=tool", token=OTHER_ADMIN)).json()["data"] == []


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("since=2026-01-02&until=2026-01-01", 422, "usage_days_invalid"),
        ("since=yesterday", 422, "parameters_invalid"),
        ("by=colour", 422, "parameters_invalid"),
        ("cursor=x", 422, "cursor_invalid"),
        ("by=tool&by=model", 422, "usage_keys_invalid"),
        ("by=tool&agent_id=agt_1", 422, "usage_keys_invalid"),
        ("tool=read&by=person", 422, "usage_keys_invalid"),
        ("by=tool&since=2026-01-02&until=2026-01-01", 422, "usage_days_invalid"),
    ],
)
async def test_a_report_that_cannot_be_is_refused(service: Service, query: str, status: int, code: str) -> None:
    problem = problem_of(await service.call("GET", f"/v1/usage?{query}"), status, code)
    assert paths_of(problem)
