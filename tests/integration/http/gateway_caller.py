"""A client of the gateway over HTTP that says what a test tells it to, and what it needs to be let
in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from tests.builders import ORG
from tests.composition import MODEL
from tests.integration.http.service import Service

HOST = "agents.example.com"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
ECHO = "mcp__files__echo"
Json = dict[str, object]


@dataclass(slots=True, kw_only=True)
class Caller:
    """A client of the gateway that says what a test tells it to."""

    service: Service
    token: str | None
    session_id: str = ""
    query: str = ""

    async def send(
        self,
        body: object,
        *,
        method: str = "POST",
        headers: Mapping[str, str | None] | None = None,
    ) -> httpx.Response:
        """One request; a header that is None is left out."""
        base = {
            "host": HOST,
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "authorization": None if self.token is None else f"Bearer {self.token}",
        }
        sent = {name: value for name, value in {**base, **(headers or {})}.items() if value is not None}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.service.client.request(method, f"/mcp{self.query}", content=content, headers=sent)

    async def legacy(self, method: str, params: Json | None = None, *, version: str = LEGACY) -> Json:
        """A request after the handshake."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        response = await self.send(message, headers={"mcp-protocol-version": version})
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def modern(self, method: str, params: Json | None = None, **headers: str | None) -> httpx.Response:
        """A request of the newer generation; `headers` in place of those that fit."""
        message, fitting = a_modern_request(method, params)
        return await self.send(message, headers={**fitting, **{k.replace("_", "-"): v for k, v in headers.items()}})


def a_modern_request(method: str, params: Json | None = None) -> tuple[Json, dict[str, str | None]]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    headers: dict[str, str | None] = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if params and "name" in params:
        headers["mcp-name"] = str(params["name"])
    return {"jsonrpc": "2.0", "id": "a", "method": method, "params": {**(params or {}), "_meta": meta}}, headers


async def an_agent(service: Service, name: str = "toolbox", **settings: object) -> Json:
    await service.call("POST", "/v1/mcp-servers", json={"slug": "files", "kind": "custom", "command": "files"})
    agent = {"name": name, "model": MODEL, "mcp_servers": ["files"], "tools": ["send_email"], **settings}
    response = await service.call("POST", "/v1/agents", json=agent)
    assert response.status_code == 201, response.text
    return dict(response.json())


async def opened(service: Service, **body: object) -> Caller:
    response = await service.call("POST", "/v1/gateway-sessions", json=body or {"agent_id": "toolbox"})
    assert response.status_code == 201, response.text
    session = response.json()
    assert session["url"] == f"https://{HOST}/mcp"
    return Caller(service=service, token=session["token"], session_id=session["id"])


async def actions(service: Service) -> list[AuditAction]:
    page = await service.stores.audit.page(ORG, AuditFilter(), PageRequest(limit=100))
    return [entry.action for entry in page.items]


def error_of(response: httpx.Response) -> tuple[int, int]:
    """The HTTP status, and the code of the JSON-RPC error."""
    return response.status_code, response.json()["error"]["code"]
