"""Requests of A2A on both bindings, for tests of the service over HTTP."""

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

import httpx

from domain.identity.role import Role
from tests.integration.http.service import Service, token_of

AGENT = "/a2a/v1/guide"
VERSION = {"A2A-Version": "1.0"}
ADMIN = token_of(Role.ADMIN)

Json = dict[str, Any]
_NUMBERS = count(1)


def says(
    text: str = "hello", *, parts: list[Json] | None = None, configuration: Json | None = None, **more: str
) -> Json:
    """The parameters of a message; `more` names its context or its task."""
    message = {"messageId": f"m{next(_NUMBERS)}", "role": "ROLE_USER", "parts": parts or [{"text": text}], **more}
    return {"message": message, **({} if configuration is None else {"configuration": configuration})}


async def rest(
    service: Service,
    method: str,
    path: str,
    *,
    json: object = None,
    token: str | None = ADMIN,
    headers: Mapping[str, str] = VERSION,
    agent: str = AGENT,
) -> httpx.Response:
    return await service.call(method, f"{agent}{path}", json=json, token=token, headers=headers)


async def rpc(service: Service, method: str, params: object = None, *, token: str | None = ADMIN) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return await service.call("POST", AGENT, json=body, token=token, headers=VERSION)


async def called(service: Service, method: str, params: object = None, *, token: str = ADMIN) -> Json:
    """The result of a call by JSON-RPC."""
    answer = (await rpc(service, method, params, token=token)).json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
    assert "result" in answer, answer
    result: Json = answer["result"]
    return result


async def sent(service: Service, text: str = "hello", **more: Any) -> Json:
    """The task of a message."""
    task: Json = (await called(service, "SendMessage", says(text, **more)))["task"]
    return task


def updates(response: httpx.Response) -> list[Json]:
    """The events of a stream."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return [json.loads(frame.removeprefix("data: ")) for frame in response.text.strip().split("\n\n")]


def failed(response: httpx.Response, status: int, reason: str) -> Json:
    """The error of the HTTP binding, held to its shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error: Json = response.json()["error"]
    assert (error["code"], bool(error["message"])) == (status, True)
    assert error["details"][0]["reason"] == reason
    return error


def rpc_failed(response: httpx.Response, code: int, *, status: int = 200) -> Json:
    assert response.status_code == status, response.text
    error: Json = response.json()["error"]
    assert error["code"] == code
    return error
