"""Pinned tools over HTTP: their state, the difference, and approving it."""

import pytest

from tests.doubles.mcp_connections import InMemoryTool, text_reply
from tests.integration.http.service import Service, problem_of

FILES: dict[str, object] = {"slug": "files", "kind": "custom", "command": "files-server", "isolation": "shared"}

pytestmark = pytest.mark.requirement("B13")


async def listed(service: Service, **descriptions: str) -> dict[str, dict[str, object]]:
    """What is shown after the server has listed these tools."""
    tools = {
        name: InMemoryTool(answer=text_reply("hi"), description=description)
        for name, description in descriptions.items()
    }
    service.connections.servers["files"].tools = tools
    answer = await service.call("POST", "/v1/mcp-servers/files/refresh")
    assert answer.status_code == 200
    return {tool["name"]: tool for tool in answer.json()["data"]}


async def test_a_changed_tool_is_shown_with_its_difference_and_approved(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    first = await listed(service, echo="Says it again.")
    assert (first["echo"]["state"], "diff" in first["echo"]) == ("approved", False)
    changed = await listed(service, echo="Says it to all.", zip="Packs.")
    assert {name: tool["state"] for name, tool in changed.items()} == {"echo": "quarantined", "zip": "quarantined"}
    assert '-    "Says it again."\n+    "Says it to all."' in str(changed["echo"]["diff"])
    assert str(changed["zip"]["diff"]).startswith("--- /dev/null\n+++ current\n")

    path = "/v1/mcp-servers/files/tools/echo/approve"
    stale = await service.call("POST", path, json={"digest": first["echo"]["digest"]})
    problem_of(stale, 409, "mcp_tool_changed")
    approved = await service.call("POST", path, json={"digest": changed["echo"]["digest"]})
    assert approved.status_code == 200
    assert approved.json() == {
        **{key: value for key, value in changed["echo"].items() if key != "diff"},
        "state": "approved",
    }
    assert (await service.call("POST", "/v1/mcp-servers/files/tools/zip/approve")).json()["state"] == "approved"
    shown = (await service.call("GET", "/v1/mcp-servers/files/tools")).json()["data"]
    assert [(tool["name"], tool["state"]) for tool in shown] == [("echo", "approved"), ("zip", "approved")]


@pytest.mark.requirement("S5")
async def test_a_first_definition_that_hides_text_waits_and_is_shown_with_escapes(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    tools = await listed(service, echo="Says it again.\U000e0049\U000e0047", zip="Packs.")
    assert (tools["echo"]["state"], tools["zip"]["state"]) == ("quarantined", "approved")
    assert "Says it again.\\U000e0049\\U000e0047" in str(tools["echo"]["diff"])


@pytest.mark.requirement("S5")
async def test_an_organization_that_reviews_first_definitions_has_them_wait(service: Service) -> None:
    answer = await service.call("PATCH", "/v1/organization", json={"first_use": "review"})
    assert (answer.status_code, answer.json()["first_use"]) == (200, "review")
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    assert (await listed(service, echo="Says it again."))["echo"]["state"] == "quarantined"
    problem_of(await service.call("PATCH", "/v1/organization", json={"first_use": "trust"}), 422, "body_invalid")


async def test_a_server_s_tools_come_whole_or_in_pages(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    path = "/v1/mcp-servers/files/tools"
    await listed(service, echo="Says it again.", unzip="Unpacks.", zip="Packs.")
    whole = (await service.call("GET", path)).json()
    assert (len(whole["data"]), whole["next_cursor"]) == (3, None)
    first = (await service.call("GET", f"{path}?limit=2")).json()
    assert first["data"] == whole["data"][:2]
    second = (await service.call("GET", f"{path}?limit=2&cursor={first['next_cursor']}")).json()
    assert second == {**whole, "data": whole["data"][2:]}
    assert (await service.call("GET", f"{path}?limit=3")).json() == whole
    problem_of(await service.call("GET", f"{path}?cursor=x"), 422, "cursor_invalid")
    problem_of(await service.call("GET", f"{path}?limit=0"), 422, "parameters_invalid")


async def test_a_tool_in_quarantine_says_so_among_all_tools_and_is_not_an_agents(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    await service.call(
        "POST", "/v1/agents", json={"name": "guide", "model": "scripted:demo.yaml", "mcp_servers": ["files"]}
    )
    await listed(service, echo="Says it again.")
    await listed(service, echo="Says it again.", zip="Packs.")
    everything = (await service.call("GET", "/v1/tools")).json()["data"]
    health = {tool["name"]: tool["health"] for tool in everything if tool["server"] == "files"}
    assert health == {"mcp__files__echo": "connected", "mcp__files__zip": "quarantined"}
    of_agent = (await service.call("GET", "/v1/tools?agent=guide")).json()["data"]
    assert [tool["name"] for tool in of_agent] == ["mcp__files__echo"]


async def test_what_cannot_be_approved_is_a_problem(service: Service) -> None:
    problem_of(await service.call("POST", "/v1/mcp-servers/files/tools/echo/approve"), 404, "mcp_server_not_found")
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    problem_of(await service.call("POST", "/v1/mcp-servers/files/tools/echo/approve"), 404, "mcp_tool_not_found")
    await listed(service, echo="Says it again.")
    wrong = await service.call("POST", "/v1/mcp-servers/files/tools/echo/approve", json={"digests": "x"})
    problem_of(wrong, 422, "body_invalid")


@pytest.mark.requirement("U6")
async def test_a_tool_is_rejected_with_a_reason_and_approved_after_all(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    await listed(service, echo="Says it again.")
    changed = await listed(service, echo="Says it to all.")
    path = "/v1/mcp-servers/files/tools/echo"
    problem_of(await service.call("POST", f"{path}/reject", json={"digest": "sha256:0"}), 409, "mcp_tool_changed")
    problem_of(await service.call("POST", f"{path}/reject", json={"reason": "x" * 501}), 422, "body_invalid")
    body = {"digest": changed["echo"]["digest"], "reason": "It tells all."}
    rejected = await service.call("POST", f"{path}/reject", json=body)
    assert rejected.status_code == 200
    found = rejected.json()
    assert (found["state"], found["diff"]) == ("rejected", changed["echo"]["diff"])
    assert (found["rejection"]["reason"], set(found["rejection"])) == ("It tells all.", {"by", "at", "reason"})
    assert (await listed(service, echo="Says it to all."))["echo"]["state"] == "rejected"
    assert (await service.call("POST", f"{path}/approve")).json()["state"] == "approved"
    problem_of(await service.call("POST", f"{path}/reject"), 409, "mcp_tool_approved")
