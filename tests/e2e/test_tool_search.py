"""A service told to let agents search for tools, over a real server."""

import json
from pathlib import Path

import pytest

from tests.e2e.service import a_turn, assert_consistent, parts, serving


@pytest.mark.requirement("A13")
def test_an_agent_finds_a_tool_and_calls_it_by_what_it_found(tmp_path: Path) -> None:
    with serving(tmp_path / "home", DRAGOMAN_TOOL_SEARCH_THRESHOLD="4") as service:
        log = service.watched_server("watched")
        model = service.script(
            "finder",
            a_turn("", ("search_tools", {"query": "note"})),
            a_turn("", ("call_tool", {"name": "mcp__watched__note", "arguments": {"text": "found you"}})),
            a_turn("Done."),
        )
        service.agent("finder", model, mcp_servers=["watched"])

        answer = service.run("finder")

        assert answer["run"]["status"] == "completed"
        found, noted = parts(answer["messages"], "tool_result")
        assert json.loads(found["result"])["tools"][0]["name"] == "mcp__watched__note"
        assert (noted["tool_name"], noted["is_error"]) == ("call_tool", False)
        assert "note" in log.read_text(encoding="utf-8")
        events = service.events(answer["run"]["id"])
        assert_consistent(answer["messages"], events)
        executed = [event["name"] for event in events if event["type"] == "tool.executed"]
        assert executed == ["search_tools", "mcp__watched__note"]
        audited = service.call("GET", "/audit-events?tool=mcp__watched__note")["data"]
        assert [entry["action"] for entry in audited] == ["tool.executed"]
