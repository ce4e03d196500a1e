"""A Vault on a port of this machine: the KV engine of version 2, and logins by AppRole and
Kubernetes, as its API documentation has them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

ROOT = "hvs.root-of-the-tests"


@dataclass
class FakeVault:
    """`secrets` by path below `/v1`. `fails_with` answers everything so. Tokens of logins are valid
    until `revoke_all`."""

    url: str = ""
    secrets: dict[str, dict[str, object]] = field(default_factory=dict)
    logins: dict[str, dict[str, str]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=lambda: {ROOT})
    lease_s: int = 3600
    fails_with: int | None = None
    namespaces: list[str | None] = field(default_factory=list)
    reads: int = 0
    logged_in: int = 0
    asked_to_log_in: int = 0

    def revoke_all(self) -> None:
        self.tokens.clear()

    async def read(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix("/v1/")
        self.reads += 1
        self.namespaces.append(request.headers.get("x-vault-namespace"))
        assert request.headers["x-vault-request"] == "true"
        if self.fails_with is not None:
            return web.json_response({"errors": ["Vault is sealed"]}, status=self.fails_with)
        if request.headers.get("x-vault-token") not in self.tokens or path in self.denied:
            return web.json_response({"errors": ["permission denied"]}, status=403)
        if path not in self.secrets:
            return web.json_response({"errors": []}, status=404)
        metadata = {"created_time": "2026-11-27T00:00:00Z", "deletion_time": "", "destroyed": False, "version": 1}
        data = {"data": self.secrets[path], "metadata": metadata}
        return web.json_response({"request_id": "1", "lease_id": "", "lease_duration": 0, "data": data})

    async def log_in(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix("/v1/")
        self.asked_to_log_in += 1
        if await request.json() != self.logins.get(path):
            return web.json_response({"errors": ["invalid role or secret ID"]}, status=400)
        self.logged_in += 1
        token = f"hvs.login-{self.logged_in}"
        self.tokens.add(token)
        auth = {"client_token": token, "lease_duration": self.lease_s, "renewable": True, "policies": ["default"]}
        return web.json_response({"auth": auth})


@asynccontextmanager
async def a_vault() -> AsyncIterator[FakeVault]:
    vault = FakeVault()
    app = web.Application()
    app.router.add_get("/v1/{path:.*}", vault.read)
    app.router.add_post("/v1/auth/{mount:.*}/login", vault.log_in)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server()
    vault.url = str(server.make_url("")).rstrip("/")
    try:
        yield vault
    finally:
        await server.close()
