"""Named secrets on their way to real servers: read when a connection is opened, hidden wherever
people read."""

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from domain.ids import McpServerId
from domain.mcp.server import McpServer
from domain.secrets.secret import Secret, SecretRef
from infrastructure.secrets.redaction import REDACTED, Redactor
from tests.builders import ORG, OTHER_ORG, START, an_audit_event, numbered
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.integration.mcp.parts import (
    IN_RUN,
    ISOLATED_PYTHON,
    SERVERS,
    a_call,
    remote,
    scope,
    sdk_connections,
    serving,
    started,
    text_of,
)

VALUE = "planted s3cret value"


async def secrets_with(name: str = "TOKEN", value: str = VALUE) -> InMemorySecretStore:
    store = InMemorySecretStore(InMemoryState())
    secret = Secret(organization_id=ORG, name=name, created_at=START, updated_at=START)
    await store.put(secret, value, an_audit_event())
    return store


def telling_server(*arguments: str, **settings: Any) -> McpServer:
    return started(*ISOLATED_PYTHON, str(SERVERS / "telling_server.py"), *arguments, **settings)


@pytest.mark.requirement("B12", "C7")
async def test_a_started_server_gets_its_own_environment_and_nothing_of_another() -> None:
    redactor = Redactor()
    mine = telling_server(env={"TOKEN": SecretRef("TOKEN"), "MODE": "fast"})
    theirs = telling_server(id=McpServerId(numbered("mcp", 2)), env={"OTHER": "x"})
    async with sdk_connections(secrets=await secrets_with(), redactor=redactor) as connections:
        told = json.loads(text_of(await connections.call_tool(mine, IN_RUN, a_call("tell"))))
        told_theirs = text_of(await connections.call_tool(theirs, IN_RUN, a_call("tell")))

        assert told["sizes"]["TOKEN"] == len(VALUE)
        assert told["environment"]["MODE"] == "fast"
        # By its mark the server is found if its launcher is killed.
        assert [name for name in told["environment"] if name.startswith("DRAGOMAN")] == ["DRAGOMAN_STARTED_BY"]
        assert VALUE not in json.dumps(told["arguments"])
        assert VALUE not in told_theirs
        # What it printed is shown to operators, without what it was given in secret.
        assert REDACTED in connections.logs(mine)
        assert VALUE not in connections.logs(mine)
    assert redactor.redact(f"it said {VALUE}") == f"it said {REDACTED}"


@pytest.mark.requirement("B12")
async def test_a_server_that_tells_its_secret_does_not_get_it_to_the_model() -> None:
    server = telling_server(env={"TOKEN": SecretRef("TOKEN"), "API_KEY": "given-itself"})
    async with sdk_connections(secrets=await secrets_with()) as connections:
        reply = await connections.call_tool(server, IN_RUN, a_call("tell"))
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(server, IN_RUN, a_call("tell", fail=True))
    assert REDACTED in text_of(reply)
    for told in (repr(reply), failed.value.detail):
        assert VALUE not in told
        assert "given-itself" not in told


@pytest.mark.requirement("B12", "C6")
async def test_what_one_server_answers_does_not_tell_the_secrets_of_another() -> None:
    theirs = telling_server(id=McpServerId(numbered("mcp", 2)), env={"GUESS": VALUE.replace(" ", "/")})
    async with sdk_connections(secrets=await secrets_with("TOKEN", VALUE.replace(" ", "/"))) as connections:
        await connections.call_tool(telling_server(env={"TOKEN": SecretRef("TOKEN")}), IN_RUN, a_call("tell"))
        told = json.loads(text_of(await connections.call_tool(theirs, IN_RUN, a_call("tell"))))
        assert told["environment"]["GUESS"] == VALUE.replace(" ", "/")
        assert VALUE.replace(" ", "/") in connections.logs(theirs)


@pytest.mark.requirement("B12")
async def test_the_error_output_of_a_server_that_fails_is_shown_without_its_secrets() -> None:
    server = telling_server("--fail", env={"TOKEN": SecretRef("TOKEN")})
    async with sdk_connections(secrets=await secrets_with()) as connections:
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(server, IN_RUN, a_call("tell"))
    assert "started with" in failed.value.stderr
    assert VALUE not in failed.value.stderr


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("kind", ["started", "remote"])
async def test_a_secret_that_does_not_exist_is_why_there_is_no_connection(kind: str) -> None:
    server = (
        telling_server(env={"TOKEN": SecretRef("NOWHERE")})
        if kind == "started"
        else remote("http://127.0.0.1:9/mcp", headers={"Authorization": SecretRef("NOWHERE")})
    )
    async with sdk_connections(secrets=await secrets_with()) as connections:
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(server, IN_RUN, a_call("tell"))
        assert failed.value.kind is McpFailureKind.NOT_CONNECTED
        assert "'NOWHERE'" in failed.value.detail
        assert connections.status(server).state is ServerState.ERROR
        assert connections.status(server).last_error == failed.value.detail


@pytest.mark.requirement("C6", "C7")
async def test_a_secret_of_another_organization_does_not_exist() -> None:
    server = started(
        *ISOLATED_PYTHON,
        str(SERVERS / "telling_server.py"),
        organization_id=OTHER_ORG,
        env={"TOKEN": SecretRef("TOKEN")},
    )
    async with sdk_connections(secrets=await secrets_with()) as connections:
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(server, scope(OTHER_ORG), a_call("tell"))
    assert "does not exist" in failed.value.detail


@pytest.mark.requirement("B12", "C7")
async def test_a_remote_server_gets_the_secrets_that_its_url_names_and_does_not_get_them_shown() -> None:
    seen: list[str] = []

    async def answer(request: Request) -> Response:
        seen.append(str(request.query_params["key"]))
        return Response(status_code=503)

    redactor = Redactor()
    async with serving(Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST"])])) as url:
        server = remote(f"{url}/mcp?key=${{secret:TOKEN}}&page=1")
        async with sdk_connections(secrets=await secrets_with(value="a/b&c d"), redactor=redactor) as connections:
            with pytest.raises(McpFailure):
                await connections.call_tool(server, IN_RUN, a_call("tell"))
            assert "a/b&c d" not in str(connections.status(server).last_error)
    assert set(seen) == {"a/b&c d"}
    assert redactor.redact("?key=a%2Fb%26c%20d") == f"?key={REDACTED}"


@pytest.mark.requirement("B12", "C7")
async def test_a_remote_server_gets_its_headers_with_the_values_of_the_moment() -> None:
    seen: list[str] = []

    async def answer(request: Request) -> Response:
        seen.append(request.headers.get("x-key", ""))
        return Response(status_code=503)

    secrets = await secrets_with("KEY", "first value")
    async with serving(Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST"])])) as url:
        server = remote(f"{url}/mcp", headers={"X-Key": SecretRef("KEY")})
        async with sdk_connections(secrets=secrets) as connections:
            for value in ("first value", "second value"):
                secret = Secret(organization_id=ORG, name="KEY", created_at=START, updated_at=START)
                await secrets.put(secret, value, an_audit_event())
                with pytest.raises(McpFailure):
                    await connections.call_tool(server, IN_RUN, a_call("tell"))
                await connections.forget(ORG, server.id)
    assert set(seen) == {"first value", "second value"}


@pytest.mark.requirement("B12")
async def test_a_value_that_cannot_stand_in_a_header_is_no_request() -> None:
    secrets = await secrets_with("KEY", "two\r\nX-Injected: lines")
    async with sdk_connections(secrets=secrets) as connections:
        server = remote("http://127.0.0.1:9/mcp", headers={"X-Key": SecretRef("KEY")})
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(server, IN_RUN, a_call("tell"))
    assert failed.value.kind is McpFailureKind.NOT_CONNECTED
    assert "headers.X-Key" in failed.value.detail
