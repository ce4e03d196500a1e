"""Which error each generation of the protocol gives for what, in one table; and how a client
without a token is told where to learn more (RFC 6750, RFC 9728)."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from pytest_mock import MockerFixture

from application.mcp.contents import ContentMethod
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from tests.builders import an_audit_event
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, text_reply
from tests.integration.http.gateway_caller import (
    ECHO,
    HOST,
    LEGACY,
    MODERN,
    Caller,
    Json,
    a_modern_request,
    an_agent,
    opened,
)
from tests.integration.http.service import Service, token_of
from tests.people_builders import a_provider

PARSE, INVALID, NO_METHOD, PARAMS = -32700, -32600, -32601, -32602
MISMATCH, UNSUPPORTED, NO_RESOURCE = -32020, -32022, -32002
METADATA = "/.well-known/oauth-protected-resource"

CASES: dict[str, tuple[str, Json, tuple[int, int] | None, tuple[int, int] | None]] = {
    # what is asked: method, parameters, (status, code) until 2025-11-25, (status, code) from
    # 2026-07-28
    "a method of nobody": ("no/such", {}, (200, NO_METHOD), (404, NO_METHOD)),
    "a handshake": ("initialize", {"protocolVersion": LEGACY}, None, (404, NO_METHOD)),
    "a ping": ("ping", {}, None, (404, NO_METHOD)),
    "a discovery": ("server/discover", {}, (200, NO_METHOD), None),
    "a tool that is not there": ("tools/call", {"name": "no"}, (200, PARAMS), (200, PARAMS)),
    "a tool without a name": ("tools/call", {}, (200, PARAMS), (200, PARAMS)),
    "a tool with a list of arguments": ("tools/call", {"name": ECHO, "arguments": []}, (200, PARAMS), (200, PARAMS)),
    "a note that was not given": ("tools/call", {"name": ECHO, "requestState": "x"}, None, (200, PARAMS)),
    "a page that is not there": ("tools/list", {"cursor": "x"}, (200, PARAMS), (200, PARAMS)),
    "a resource that is not there": (
        "resources/read", {"uri": "mcp+files:file:///no"}, (200, NO_RESOURCE), (200, PARAMS)
    ),
    "a resource of nobody": ("resources/read", {"uri": "file:///no"}, (200, NO_RESOURCE), (200, PARAMS)),
    "a resource without a name": ("resources/read", {}, (200, PARAMS), (200, PARAMS)),
    "a prompt of nobody": ("prompts/get", {"name": "no"}, (200, PARAMS), (200, PARAMS)),
    "a completion of nothing": ("completion/complete", {"ref": {}, "argument": {}}, (200, PARAMS), (200, PARAMS)),
}  # fmt: skip


@pytest.fixture
async def caller(service: Service) -> Caller:
    """A client of an agent whose server has the tool `echo`, and a resource."""
    contents: dict[ContentMethod, Json] = {ContentMethod.RESOURCES: {"resources": []}}
    tools = {"echo": InMemoryTool(answer=text_reply("hi"))}
    service.connections.servers["files"] = InMemoryMcpServer(tools=tools, contents=contents)
    await an_agent(service)
    return await opened(service)


def outcome(response: Any) -> tuple[int, int] | None:
    """Status and code of an error; None for an answer."""
    error = response.json().get("error")
    return None if error is None else (response.status_code, error["code"])


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", LEGACY, MODERN])
async def test_an_error_has_the_code_of_its_generation(caller: Caller, version: str, case: str) -> None:
    method, params, legacy, modern = CASES[case]
    if version == MODERN:
        message, headers = a_modern_request(method, params)
        if "uri" in params:
            headers["mcp-name"] = str(params["uri"])
        response = await caller.send(message, headers=headers)
    else:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await caller.send(message, headers={"mcp-protocol-version": version})
    assert outcome(response) == (modern if version == MODERN else legacy)
    assert response.json()["id"] == message["id"]


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"mcp-protocol-version": None}, (400, MISMATCH)),
        ({"mcp-protocol-version": LEGACY}, (400, MISMATCH)),
        ({"mcp-method": None}, (400, MISMATCH)),
        ({"mcp-method": "tools/list"}, (400, MISMATCH)),
        ({"mcp-name": None}, (400, MISMATCH)),
        ({"mcp-name": "other"}, (400, MISMATCH)),
        ({"accept": "text/html"}, (406, INVALID)),
        ({"content-type": "text/plain"}, (415, INVALID)),
    ],
)
async def test_a_request_of_the_newer_generation_is_held_to_its_headers(
    service: Service, caller: Caller, changed: dict[str, str | None], expected: tuple[int, int]
) -> None:
    message, headers = a_modern_request("tools/call", {"name": ECHO, "arguments": {}})
    assert outcome(await caller.send(message, headers={**headers, **changed})) == expected
    assert not service.connections.calls


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("version", ["2026-07-29", "DRAFT-2026-v1", "1999-01-01"])
async def test_a_version_that_is_not_spoken_is_answered_with_those_that_are(caller: Caller, version: str) -> None:
    message, headers = a_modern_request("tools/list")
    params: Any = message["params"]
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = version
    response = await caller.send(message, headers={**headers, "mcp-protocol-version": version})
    assert outcome(response) == (400, UNSUPPORTED)
    data = response.json()["error"]["data"]
    assert data == {"supported": [MODERN], "requested": version}


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
async def test_what_a_request_does_not_say_of_itself_is_an_invalid_parameter(caller: Caller, missing: str) -> None:
    message, headers = a_modern_request("tools/list")
    params: Any = message["params"]
    del params["_meta"][f"io.modelcontextprotocol/{missing}"]
    assert outcome(await caller.send(message, headers=headers)) == (400, PARAMS)


def challenge_of(header: str) -> tuple[str, dict[str, str]]:
    """The scheme and the parameters, all of them quoted strings."""
    scheme, _, rest = header.partition(" ")
    found = dict(re.findall(r'([a-z_]+)="([^"\\]*)"', rest))
    assert ", ".join(f'{name}="{value}"' for name, value in found.items()) == rest
    return scheme, found


@pytest.mark.requirement("F5")
async def test_who_has_no_token_is_led_to_a_document_that_describes_just_this_resource(service: Service) -> None:
    asking = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    without = await Caller(service=service, token=None).send(asking)
    scheme, found = challenge_of(without.headers["www-authenticate"])
    # Who sent nothing is told no error (RFC 6750, section 3.1).
    assert (without.status_code, scheme, sorted(found)) == (401, "Bearer", ["realm", "resource_metadata", "scope"])

    wrong = await Caller(service=service, token="dgs_wrong").send(asking)
    scheme, found = challenge_of(wrong.headers["www-authenticate"])
    assert (wrong.status_code, scheme, found["error"]) == (401, "Bearer", "invalid_token")
    # The well-known path stands between host and path of the resource (RFC 9728, section 3.1).
    assert found["resource_metadata"] == f"https://{HOST}{METADATA}/mcp"
    assert wrong.json()["error"]["data"] == {"code": "token_invalid"}

    for path in (f"{METADATA}/mcp", METADATA):
        described = await service.client.get(path)
        assert (described.status_code, described.headers["content-type"]) == (200, "application/json")
        document = described.json()
        # Required, and the very identifier that clients use (section 3.3); https, without a
        # fragment (section 1.2).
        assert document["resource"] == f"https://{HOST}/mcp"
        assert document["bearer_methods_supported"] == ["header"]
        assert document["resource_name"]
        # Without an identity provider, tokens come from the API.
        assert document.keys() == {"resource", "resource_name", "bearer_methods_supported"}
    assert (await service.client.get(f"{METADATA}/other")).status_code == 404


@pytest.mark.requirement("F5")
async def test_what_cannot_be_taken_note_of_is_said_to_be_so(service: Service, mocker: MockerFixture) -> None:
    await an_agent(service)
    caller = await opened(service)
    away = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database is away.")
    notes = service.stores.gateway_notes
    mocker.patch.object(type(notes), "leave", side_effect=away)
    mocker.patch.object(type(notes), "get", side_effect=away)
    cancelled: Json = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    answer: Json = {"jsonrpc": "2.0", "id": "gwn_1", "result": {}}
    ping: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for message in (cancelled, answer):
        response = await caller.send(message)
        assert (response.status_code, response.json()["error"]["data"]) == (503, {"code": "storage_unavailable"})
    together = await caller.send([ping, answer], headers={"mcp-protocol-version": "2025-03-26"})
    assert [sorted(one) for one in together.json()] == [["id", "jsonrpc", "result"], ["error", "id", "jsonrpc"]]


@pytest.mark.requirement("P5")
async def test_with_an_identity_provider_the_document_names_an_authorization_server(service: Service) -> None:
    await service.stores.identity_providers.add(a_provider(installation=True), an_audit_event(77))
    query = "agent=reader&tool_search=always"
    asking = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    refused = await service.client.post(f"/mcp?{query}", json=asking)
    _, found = challenge_of(refused.headers["www-authenticate"])
    assert (refused.status_code, found["scope"]) == (401, "mcp")
    assert found["resource_metadata"] == f"https://{HOST}{METADATA}/mcp?{query}"
    document = (await service.client.get(f"{METADATA}/mcp?{query}")).json()
    # The resource is the URL that the client was given, with the agent in it.
    assert document["resource"] == f"https://{HOST}/mcp?{query}"
    assert document["authorization_servers"] == [f"https://{HOST}"]

    server = (await service.client.get("/.well-known/oauth-authorization-server")).json()
    assert server["issuer"] == f"https://{HOST}"
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["authorization_response_iss_parameter_supported"] is True
    assert server["client_id_metadata_document_supported"] is True
    assert {server[name] for name in server if name.endswith("_endpoint")} == {
        f"https://{HOST}{path}" for path in ("/console/authorize", "/oauth/token", "/oauth/revoke", "/register")
    }


@pytest.mark.requirement("P5")
async def test_who_calls_with_what_no_header_can_hold_gets_a_challenge_all_the_same(service: Service) -> None:
    asking = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for query in ('a="x', "a=%22%0d%0aSet-Cookie:x", "a=\\", "a=" + "b" * 5_000):
        refused = await service.client.post(f"/mcp?{query}", json=asking)
        _, found = challenge_of(refused.headers["www-authenticate"])
        assert found["resource_metadata"].startswith(f"https://{HOST}{METADATA}/mcp")
        assert "set-cookie" not in refused.headers


@pytest.mark.requirement("P5")
async def test_who_may_not_use_tools_is_told_so_as_oauth_says_it(service: Service) -> None:
    await an_agent(service)
    viewer = Caller(service=service, token=token_of(Role.VIEWER), query="?agent=toolbox")
    refused = await viewer.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    _, found = challenge_of(refused.headers["www-authenticate"])
    assert (refused.status_code, found["error"], found["scope"]) == (403, "insufficient_scope", "mcp")


@pytest.mark.requirement("P5")
async def test_without_an_identity_provider_there_is_no_authorization_server(service: Service) -> None:
    assert (await service.client.get("/.well-known/oauth-authorization-server")).status_code == 404
    form = {
        "grant_type": "authorization_code",
        "client_id": "x",
        "code": "x",
        "redirect_uri": "x",
        "code_verifier": "x",
    }
    answer = await service.client.post("/oauth/token", data=form)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


@pytest.mark.requirement("P5")
@pytest.mark.parametrize(
    ("path", "form", "error"),
    [
        ("/oauth/token", {}, "invalid_request"),
        ("/oauth/token", {"grant_type": "password", "client_id": "x"}, "unsupported_grant_type"),
        ("/oauth/token", {"grant_type": "refresh_token", "client_id": "x"}, "invalid_request"),
        ("/oauth/token", {"grant_type": "refresh_token", "refresh_token": "x"}, "invalid_request"),
        ("/oauth/revoke", {"token": "x"}, "invalid_request"),
    ],
)
async def test_a_faulty_request_for_tokens_gets_the_errors_of_oauth(
    service: Service, path: str, form: dict[str, str], error: str
) -> None:
    answer = await service.client.post(path, data=form)
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert answer.headers["cache-control"] == "no-store"
    doubled = f"{urlencode(form)}&client_id=a&client_id=b"
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert (await service.client.post(path, content=doubled, headers=headers)).status_code == 400
    assert (
        await service.client.post(path, content=b"{", headers={"content-type": "application/json"})
    ).status_code == 400
    assert (await service.client.post(path, content=b"a=" + b"b" * 20_000, headers=headers)).status_code == 413


@pytest.mark.requirement("P5")
async def test_clients_register_themselves_a_few_times_a_minute(service: Service) -> None:
    await service.stores.identity_providers.add(a_provider(installation=True), an_audit_event(77))
    callback = "http://127.0.0.1:7777/callback"
    answer = await service.client.post("/register", json={"client_name": "Editor", "redirect_uris": [callback]})
    registered = answer.json()
    assert (answer.status_code, registered["token_endpoint_auth_method"]) == (201, "none")
    assert registered["client_id"].startswith("dgc_")
    assert (registered["client_name"], registered["redirect_uris"]) == ("Editor", [callback])
    faulty: tuple[object, ...] = ("text", {"redirect_uris": []}, {"redirect_uris": ["http://evil.example/"]})
    for body in faulty:
        assert (await service.client.post("/register", json=body)).status_code == 400
    answers = [await service.client.post("/register", json={"redirect_uris": [callback]}) for _ in range(30)]
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) > 0
