"""The gateway on the wire: who is let in, which generation is spoken, what is listed, called,
refused and kept."""

from dataclasses import replace

import pytest

from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import GatewaySessionId
from domain.tools.result import ToolOutcome
from tests.builders import ORG
from tests.doubles.mcp_connections import InMemoryTool, text_reply
from tests.integration.http.gateway_caller import (
    ECHO,
    HOST,
    LEGACY,
    MODERN,
    Caller,
    Json,
    a_modern_request,
    actions,
    an_agent,
    error_of,
    opened,
)
from tests.integration.http.service import OTHER_ADMIN, Act, Service, token_of


@pytest.fixture
async def caller(service: Service) -> Caller:
    """A client with a session over an agent that has one server with the tool `echo`."""
    await an_agent(service)
    return await opened(service)


@pytest.mark.requirement("F5")
async def test_a_legacy_client_shakes_hands_lists_and_calls(caller: Caller) -> None:
    hello = await caller.legacy("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
    assert hello["result"]["protocolVersion"] == "2025-06-18"  # type: ignore[index]
    announced = hello["result"]["capabilities"]  # type: ignore[index]
    assert announced.keys() == {"tools", "resources", "prompts", "completions", "logging", "extensions"}
    assert announced["resources"] == {"subscribe": True, "listChanged": True}
    noted = await caller.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (noted.status_code, noted.content) == (202, b"")

    listed = await caller.legacy("tools/list")
    # What a client of a run displays is not there: nobody would settle it.
    assert [tool["name"] for tool in listed["result"]["tools"]] == [ECHO]  # type: ignore[index]
    answer = await caller.legacy("tools/call", {"name": ECHO, "arguments": {}})
    assert answer["result"] == {"content": [{"type": "text", "text": "hi"}], "isError": False}
    assert await caller.legacy("ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.requirement("F5")
async def test_a_modern_client_discovers_lists_and_calls_without_a_handshake(caller: Caller) -> None:
    found = (await caller.modern("server/discover")).json()["result"]
    assert (found["resultType"], found["supportedVersions"][0]) == ("complete", MODERN)
    listed = (await caller.modern("tools/list")).json()["result"]
    assert [tool["name"] for tool in listed["tools"]] == [ECHO]
    assert (listed["cacheScope"], listed["ttlMs"] >= 0) == ("private", True)
    answer = (await caller.modern("tools/call", {"name": ECHO, "arguments": {}})).json()
    assert answer == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"resultType": "complete", "content": [{"type": "text", "text": "hi"}], "isError": False},
    }


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_version_with_a_handshake_is_spoken_and_an_unknown_one_is_offered_the_newest(
    caller: Caller, version: str
) -> None:
    assert (await caller.legacy("tools/list", version=version))["result"]
    hello = await caller.legacy("initialize", {"protocolVersion": "1999-01-01", "capabilities": {}}, version=version)
    assert hello["result"]["protocolVersion"] == LEGACY  # type: ignore[index]


@pytest.mark.requirement("F5")
async def test_several_messages_at_a_time_are_answered_where_the_version_has_that(caller: Caller) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "nothing"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": ECHO}},
    ]
    answers = (await caller.send(batch, headers={"mcp-protocol-version": "2025-03-26"})).json()
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert answers[1]["error"]["code"] == -32601
    notes = await caller.send([batch[1]], headers={"mcp-protocol-version": "2025-03-26"})
    assert notes.status_code == 202
    for version in (LEGACY, MODERN):
        assert error_of(await caller.send(batch, headers={"mcp-protocol-version": version})) == (400, -32600)
    assert error_of(await caller.send(batch * 20, headers={"mcp-protocol-version": "2025-03-26"})) == (400, -32600)


@pytest.mark.requirement("C6", "F5")
async def test_each_of_several_messages_counts_for_the_limit_of_its_token(service: Service, caller: Caller) -> None:
    body = {"name": "many", "role": "runner", "rate_limit": {"calls": 3, "per_s": 1_000}}
    token = (await service.call("POST", "/v1/api-keys", json=body)).json()["token"]
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(5)]
    held = replace(caller, token=token, query="?agent=toolbox")
    answers = (await held.send(batch, headers={"mcp-protocol-version": "2025-03-26"})).json()
    codes = [answer["error"]["code"] if "error" in answer else 0 for answer in answers]
    assert codes == [0, 0, 0, -32029, -32029]
    assert answers[4]["error"]["data"]["retryAfterSeconds"] > 0


@pytest.mark.requirement("C6", "F5")
@pytest.mark.parametrize("token", [None, "dgs_unknown", "dgm_unknown", "nonsense"])
async def test_who_has_no_token_that_opens_anything_is_told_where_to_learn_more(
    service: Service, token: str | None
) -> None:
    caller = Caller(service=service, token=token)
    response = await caller.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})

    assert response.status_code == 401
    challenge = response.headers["www-authenticate"]
    metadata = f"https://{HOST}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{metadata}"' in challenge
    document = await service.client.get("/.well-known/oauth-protected-resource/mcp")
    assert document.json()["resource"] == f"https://{HOST}/mcp"


@pytest.mark.requirement("F5")
async def test_a_client_that_wants_to_register_is_told_that_it_needs_a_token(service: Service) -> None:
    answer = await service.client.post("/register", json={"redirect_uris": ["http://127.0.0.1:7777/callback"]})
    assert (answer.status_code, answer.json()["error"]) == (400, "access_denied")
    assert "bearer" in answer.json()["error_description"]


@pytest.mark.requirement("F5")
async def test_a_revoked_token_opens_nothing_from_that_moment(service: Service, caller: Caller) -> None:
    assert (await caller.legacy("ping"))["result"] == {}
    revoked = await service.call("DELETE", f"/v1/gateway-sessions/{caller.session_id}")
    assert revoked.status_code == 204

    response = await caller.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert response.status_code == 401
    assert (await service.call("DELETE", f"/v1/gateway-sessions/{caller.session_id}")).status_code == 404
    trail = await actions(service)
    assert trail.count(AuditAction.GATEWAY_SESSION_CREATED) == trail.count(AuditAction.GATEWAY_SESSION_REVOKED) == 1


@pytest.mark.requirement("F6")
async def test_a_session_of_a_run_is_refused_once_the_run_has_ended(service: Service) -> None:
    await an_agent(service)
    service.worker.act = Act.ASK
    run = (await service.call("POST", "/v1/runs", json={"agent": "toolbox", "input": "hello"})).json()
    caller = await opened(service, run_id=run["id"])
    assert (await caller.legacy("tools/call", {"name": ECHO}))["result"]
    service.worker.act = Act.FINISH
    assert (await service.call("POST", f"/v1/runs/{run['id']}/cancel")).status_code in (200, 202)

    late = await service.call("POST", "/v1/gateway-sessions", json={"run_id": run["id"]})
    assert (late.status_code, late.json()["code"]) == (409, "run_ended")
    listed = (await service.call("GET", "/v1/gateway-sessions")).json()["data"]
    assert [entry["revoked_at"] is not None for entry in listed] == [True]


@pytest.mark.requirement("F5", "C6")
async def test_an_api_key_opens_the_tools_of_an_agent_that_it_names(service: Service) -> None:
    await an_agent(service)
    runner = Caller(service=service, token=token_of(Role.RUNNER), query="?agent=toolbox")
    assert (await runner.legacy("tools/call", {"name": ECHO}))["result"]

    async def refused(token: str, query: str) -> tuple[int, object]:
        response = await Caller(service=service, token=token, query=query).send(
            {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        )
        return response.status_code, response.json()["error"]["data"]["code"]

    assert await refused(token_of(Role.RUNNER), "") == (200, "agent_missing")
    assert await refused(token_of(Role.RUNNER), "?agent=nobody") == (200, "agent_not_found")
    assert await refused(OTHER_ADMIN, "?agent=toolbox") == (200, "agent_not_found")
    assert await refused(token_of(Role.VIEWER), "?agent=toolbox") == (403, "role_insufficient")
    assert (await service.call("GET", "/v1/gateway-sessions")).json()["data"] == []


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({"host": "evil.example.com"}, True),
        ({"host": "agents.example.com.evil.example.com"}, True),
        ({"origin": "http://evil.example.com"}, True),
        ({"origin": "null"}, True),
        ({"origin": f"https://{HOST}"}, False),
        ({"host": "localhost:8321", "origin": "http://localhost:5173"}, False),
        ({"host": "127.0.0.1:8321", "origin": "http://127.0.0.1:6274"}, False),
        ({"host": "[::1]:8321"}, False),
    ],
)
async def test_a_page_that_reaches_the_gateway_under_another_name_is_refused(
    caller: Caller, headers: dict[str, str | None], is_refused: bool
) -> None:
    response = await caller.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
    assert (response.status_code == 403) is is_refused


@pytest.mark.requirement("F5")
async def test_headers_that_differ_from_the_body_are_refused_before_anything_is_done(
    service: Service, caller: Caller
) -> None:
    call: Json = {"name": ECHO, "arguments": {}}
    assert error_of(await caller.modern("tools/call", call, mcp_name="another")) == (400, -32020)
    assert error_of(await caller.modern("tools/call", call, mcp_name=None)) == (400, -32020)
    assert error_of(await caller.modern("tools/call", call, mcp_method="tools/list")) == (400, -32020)
    assert error_of(await caller.modern("tools/call", call, mcp_protocol_version=LEGACY)) == (400, -32020)
    encoded = await caller.modern("tools/call", call, mcp_name="=?base64?bWNwX19maWxlc19fZWNobw==?=")
    assert encoded.json()["result"]["isError"] is False
    message, headers = a_modern_request("tools/list")
    params = message["params"]
    assert isinstance(params, dict)
    params["_meta"] = {**params["_meta"], "io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    future = await caller.send(message, headers={**headers, "mcp-protocol-version": "2030-01-01"})
    assert error_of(future) == (400, -32022)
    assert future.json()["error"]["data"] == {"supported": [MODERN], "requested": "2030-01-01"}
    params["_meta"] = {}
    assert error_of(await caller.send(message, headers=headers)) == (400, -32602)
    assert (await actions(service)).count(AuditAction.TOOL_EXECUTED) == 1


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b"{", {}, (400, -32700)),
        (b"[" * 100_000, {}, (400, -32700)),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, {}, (400, -32700)),
        (b'"text"', {}, (400, -32600)),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', {}, (400, -32600)),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', {}, (400, -32600)),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', {}, (400, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', {}, (400, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', {}, (400, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', {}, (400, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', {}, (200, -32601)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"mcp-protocol-version": "1999-01-01"}, (400, -32022)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"content-type": "text/plain"}, (415, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"accept": "text/html"}, (406, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', {}, (200, -32602)),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":[]}}', {}, (200, -32602)),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"MQ=="}}', {}, (200, -32602)),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":7}}', {}, (200, -32602)),
        (b" " * (10 * 1024 * 1024 + 1), {}, (413, -32600)),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_what_cannot_be_used_is_answered_with_the_protocols_own_error(
    caller: Caller, body: bytes, headers: dict[str, str | None], expected: tuple[int, int]
) -> None:
    assert error_of(await caller.send(body, headers=headers)) == expected


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_methods_that_mean_nothing_here_are_refused(caller: Caller, method: str) -> None:
    response = await caller.send(b"", method=method)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST, DELETE")


@pytest.mark.requirement("B6", "C2", "F5")
async def test_a_tool_outside_the_session_is_unknown_and_a_denied_one_says_why(service: Service) -> None:
    await an_agent(service, tool_policies={ECHO: {"decision": "deny"}})
    caller = await opened(service)

    assert (await caller.legacy("tools/list"))["result"] == {"tools": []}
    for name in ("mcp__files__other", "send_email", "echo", ""):
        answer = await caller.legacy("tools/call", {"name": name, "arguments": {}})
        error = answer["error"]
        assert isinstance(error, dict)
        assert (error["code"], str(error["message"]).startswith("Unknown tool. ")) == (-32602, True)
    denied = await caller.legacy("tools/call", {"name": ECHO, "arguments": {}})
    result = denied["result"]
    assert isinstance(result, dict)
    assert result["isError"] is True
    assert "blocked by policy" in result["content"][0]["text"]
    kept = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    outcomes = {call.name: outcome.result for call, outcome in kept if outcome is not None}
    assert outcomes.keys() == {"mcp__files__other", "send_email", "echo", "", ECHO}
    assert outcomes.pop(ECHO).outcome is ToolOutcome.BLOCKED
    assert {result.error_code for result in outcomes.values()} == {"tool_not_found"}
    assert (await actions(service)).count(AuditAction.TOOL_BLOCKED) == 1
    assert (await actions(service)).count(AuditAction.TOOL_FAILED) == 4


@pytest.mark.requirement("C1", "F5")
async def test_what_an_agent_is_changed_to_holds_for_the_next_request(service: Service) -> None:
    agent = await an_agent(service)
    caller = await opened(service)
    assert (await caller.legacy("tools/call", {"name": ECHO}))["result"]

    await service.call("PATCH", f"/v1/agents/{agent['id']}", json={"tool_allowlist": []})
    assert (await caller.legacy("tools/list"))["result"] == {"tools": []}
    assert (await caller.legacy("tools/call", {"name": ECHO}))["error"]["code"] == -32602  # type: ignore[index]
    await service.call("PATCH", f"/v1/agents/{agent['id']}", json={"enabled": False})
    closed = await caller.legacy("tools/list")
    assert closed["error"]["data"] == {"code": "agent_disabled"}  # type: ignore[index]


@pytest.mark.requirement("F5")
async def test_original_names_are_for_sessions_over_exactly_one_server(service: Service) -> None:
    await an_agent(service, tools=[])
    await an_agent(service, "mixed")
    caller = await opened(service, agent_id="toolbox", names="original")

    listed = (await caller.legacy("tools/list"))["result"]
    assert [tool["name"] for tool in listed["tools"]] == ["echo"]  # type: ignore[index]
    assert (await caller.legacy("tools/call", {"name": "echo"}))["result"]
    assert (await caller.legacy("tools/call", {"name": ECHO}))["error"]["code"] == -32602  # type: ignore[index]
    kept = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    assert {call.name for call, _ in kept} == {ECHO}  # policy, ledger and audit know one name
    refused = await service.call("POST", "/v1/gateway-sessions", json={"agent_id": "mixed", "names": "original"})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "names")


@pytest.mark.requirement("C4", "F5")
async def test_a_canary_token_in_arguments_or_a_result_ends_the_session(service: Service) -> None:
    await an_agent(service, canary_tokens=[{"id": "vault", "token": "the-crown-jewels-42"}])
    caller = await opened(service)
    leak = await caller.legacy("tools/call", {"name": ECHO, "arguments": {"text": "the-crown-jewels-42"}})
    assert leak["error"]["data"] == {"code": "gateway_session_halted"}  # type: ignore[index]
    assert (await caller.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 401

    service.connections.servers["files"].tools = {"echo": InMemoryTool(answer=text_reply("THE-CROWN-JEWELS-42"))}
    another = await opened(service)
    leaked = await another.legacy("tools/call", {"name": ECHO, "arguments": {}})
    assert leaked["error"]["data"] == {"code": "gateway_session_halted"}  # type: ignore[index]
    assert (await actions(service)).count(AuditAction.SESSION_HALTED) == 2
    session = await service.stores.gateway_sessions.get(ORG, GatewaySessionId(another.session_id))
    assert session is not None
    thread = (await service.call("GET", f"/v1/threads/{session.thread_id}")).json()
    assert thread["quarantine"]["canary_id"] == "vault"


@pytest.mark.requirement("C6", "F5")
async def test_a_session_is_of_one_organization(service: Service, caller: Caller) -> None:
    theirs = await service.call("POST", "/v1/gateway-sessions", json={"agent_id": "toolbox"}, token=OTHER_ADMIN)
    assert (theirs.status_code, theirs.json()["code"]) == (404, "agent_not_found")
    hidden = await service.call("DELETE", f"/v1/gateway-sessions/{caller.session_id}", token=OTHER_ADMIN)
    assert hidden.status_code == 404
    assert (await service.call("GET", "/v1/gateway-sessions", token=OTHER_ADMIN)).json()["data"] == []
    assert (await caller.legacy("ping"))["result"] == {}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "agent_id"),
        ({"agent_id": "a", "run_id": "run_1"}, "agent_id"),
        ({"agent_id": "a", "ttl_s": 0}, "ttl_s"),
        ({"agent_id": "a", "ttl_s": 10**9}, "ttl_s"),
        ({"agent_id": "a", "names": "short"}, "names"),
        ({"agent_id": "a", "node_ids": []}, "node_ids"),
    ],
)
async def test_a_session_that_makes_no_sense_is_refused_with_the_field(service: Service, body: Json, path: str) -> None:
    response = await service.call("POST", "/v1/gateway-sessions", json=body)
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == path
