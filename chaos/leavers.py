"""People who are removed while they use everything: how long each way into a service still admits
them. They are removed at one of two services on PostgreSQL and ask the other one; then the same at
one service on SQLite."""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from domain.json_value import JsonObject
from tests.databases import PostgresDatabases, postgres_server
from tests.e2e.consent import People
from tests.e2e.identity_provider import CLI_CLIENT, providing_for, register
from tests.e2e.postgres import cluster
from tests.e2e.service import Json, Service, a_turn, serving

ROUNDS = 9
BOUND_S = 1.0
"""What a removed person may still be admitted for, from the request that removes them."""
_PATIENCE_S = 30.0
_PAUSE_S = 0.02
_AGENT = "patient"
_KEY = "API, with a key that is revoked"
_MODEL_MS = 60_000
_SETTINGS = {"DRAGOMAN_KEY_RATE_LIMIT": "1000000/1"}
_SCIM_PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
_PROTOCOL = "2026-07-28"

Way = Callable[[], Awaitable[bool]]
"""One request; whether it was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """`told` is the service at which people are removed, `asked` the one that they use."""

    told: Service
    asked: Service
    people: People
    directory: httpx.Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaver:
    """A person with everything that admits them, and `key`, which they know. They watch a run of
    theirs, and `others_run`."""

    user_id: str
    token: str
    session: str
    key: str
    key_id: str
    run: str
    others_run: str
    browser: httpx.AsyncClient


@dataclass(slots=True, kw_only=True)
class Admitted:
    """Seconds by way, one figure a round; and what did not hold."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument(
        "--leavers", type=int, default=ROUNDS, help="people: who leave, on each database (default %(default)s)"
    )


def run(arguments: argparse.Namespace) -> list[str]:
    """Both databases; prints figures and gives what did not hold."""
    complaints = []
    for name, made in (("two services on PostgreSQL", on_postgres), ("a service on SQLite", on_sqlite)):
        with made(arguments.leavers) as world:
            complaints += asyncio.run(measured(world, name, leavers=arguments.leavers))
    return complaints


@contextmanager
def on_postgres(leavers: int) -> Iterator[World]:
    """Two services with a database."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-leavers-")))
        databases = stack.enter_context(PostgresDatabases(stack.enter_context(postgres_server())).prepared())
        processes = stack.enter_context(cluster(stack.enter_context(databases.fresh()), folder))
        stack.enter_context(processes.running)
        processes.extra.update(_SETTINGS)
        told, asked = (processes.serve(f"api-{number}") for number in range(2))
        yield stack.enter_context(_world(told, asked, leavers))


@contextmanager
def on_sqlite(leavers: int) -> Iterator[World]:
    """One service."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-leavers-")))
        service = stack.enter_context(serving(folder / "home", **_SETTINGS))
        yield stack.enter_context(_world(service, service, leavers))


@contextmanager
def _world(told: Service, asked: Service, leavers: int) -> Iterator[World]:
    model = told.script("patient", a_turn("Late."), delay_ms=_MODEL_MS)
    told.agent(_AGENT, model)
    groups: JsonObject = {_name(number): ["agents"] for number in range(leavers)}
    with providing_for(asked.url, groups=groups) as provider:
        registered = register(told, provider, audiences=[CLI_CLIENT])
        token = told.call("POST", "/identity-providers/company/scim-token")["token"]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/scim+json"}
        with httpx.Client(base_url=f"{told.url}/scim/v2", headers=headers, trust_env=False, timeout=60.0) as directory:
            yield World(
                told=told,
                asked=asked,
                people=People(service=asked, provider=provider, registered=registered),
                directory=directory,
            )


async def measured(world: World, name: str, *, leavers: int) -> list[str]:
    """One after the other; prints figures and gives what did not hold."""
    admitted = Admitted()
    for number in range(leavers):
        removed = REMOVALS[number % len(REMOVALS)]
        async with httpx.AsyncClient(trust_env=False, timeout=60.0) as browser:
            leaver = await asyncio.to_thread(_joined, world, _name(number), browser)
            await _round(world, leaver, removed, admitted)
    for way, seconds in admitted.seconds.items():
        shown = f"median {statistics.median(seconds) * 1000:.0f} ms, longest {max(seconds) * 1000:.0f} ms"
        print(f"{name}: {way}: admitted for {shown}, of {len(seconds)} people", flush=True)
        if max(seconds) > BOUND_S:
            admitted.complaints.append(f"{way} admitted a removed person for {max(seconds):.2f} s")
    return [f"{name}: {complaint}" for complaint in admitted.complaints]


def _name(number: int) -> str:
    return f"leaver-{number}"


def _joined(world: World, name: str, browser: httpx.AsyncClient) -> Leaver:
    """The directory adds the person, who signs in to the console, starts a run, and connects a
    client to the gateway."""
    person = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": f"{name}@example.com",
        "externalId": name,
        "emails": [{"value": f"{name}@example.com", "primary": True}],
        "active": True,
    }
    added = world.directory.post("/Users", json=person).raise_for_status().json()
    token = world.people.provider.tokens(name)["id_token"]
    key = world.told.call("POST", "/api-keys", {"name": name, "role": "viewer"})
    with httpx.Client(
        base_url=f"{world.asked.url}/v1", headers=_bearer(token), trust_env=False, timeout=60.0
    ) as client:
        session = client.post("/gateway-sessions", json={"agent_id": _AGENT}).raise_for_status().json()
        started = client.post("/runs", json={"agent": _AGENT, "input": "Go."}).raise_for_status().json()
    with httpx.Client(trust_env=False, timeout=60.0) as pages:
        page = world.people.signed_in(pages, f"{world.asked.url}/console", name)
        assert page.status_code == httpx.codes.OK, page.text
        browser.cookies.update(pages.cookies)
    return Leaver(
        user_id=added["id"],
        token=token,
        session=session["token"],
        key=key["token"],
        key_id=key["id"],
        run=started["id"],
        others_run=world.told.start_run(_AGENT),
        browser=browser,
    )


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def _round(world: World, leaver: Leaver, removed: "Removal", admitted: Admitted) -> None:
    """All ways are in use when the person is removed."""
    async with httpx.AsyncClient(base_url=world.asked.url, trust_env=False, timeout=60.0) as client:
        asks, streams = _asked(client, leaver), _streamed(client, leaver)
        for way, ask in asks.items():
            assert not await ask(), f"{way} does not admit a person who is there"
        key = asks.pop(_KEY)
        using = [asyncio.create_task(_refused(ask), name=way) for way, ask in asks.items()]
        opened = [asyncio.Event() for _ in streams]
        using += [
            asyncio.create_task(_ended(way, stream, open_), name=way)
            for (way, stream), open_ in zip(streams.items(), opened, strict=True)
        ]
        async with asyncio.timeout(_PATIENCE_S):
            await asyncio.gather(*(each.wait() for each in opened))
        await _timed(using, lambda: removed(world, leaver), admitted)
        # Keys stay until an admin revokes them.
        using = [asyncio.create_task(_refused(key), name=_KEY)]
        await _timed(using, lambda: world.told.call("DELETE", f"/api-keys/{leaver.key_id}"), admitted)
        for way, ask in {**asks, _KEY: key}.items():
            if not await ask():
                admitted.complaints.append(f"{way} admits a removed person again")


async def _timed(using: list[asyncio.Task[float]], remove: Callable[[], object], admitted: Admitted) -> None:
    """What each way took from the request that removes them on."""
    began = time.monotonic()
    await asyncio.to_thread(remove)
    await asyncio.wait(using, timeout=_PATIENCE_S)
    for each in using:
        if each.done():
            admitted.seconds.setdefault(each.get_name(), []).append(each.result() - began)
        else:
            each.cancel()
            admitted.complaints.append(f"{each.get_name()} admits a removed person")


def _asked(client: httpx.AsyncClient, leaver: Leaver) -> dict[str, Way]:
    """Requests by the way that they take."""

    async def api() -> bool:
        return _is_refused(await client.get("/v1/whoami", headers=_bearer(leaver.token)))

    async def key() -> bool:
        return _is_refused(await client.get("/v1/whoami", headers=_bearer(leaver.key)))

    async def session() -> bool:
        return _is_refused(await client.post("/mcp", **_to_gateway("tools/list", {}, leaver.session)))

    async def gateway() -> bool:
        sent = _to_gateway("tools/list", {}, leaver.token)
        return _is_refused(await client.post(f"/mcp?agent={_AGENT}", **sent))

    async def console() -> bool:
        answer = await leaver.browser.get(client.base_url.join("/console/inbox"))
        return answer.status_code == httpx.codes.SEE_OTHER

    return {
        "API, with a token of the provider": api,
        _KEY: key,
        "gateway, with a session's token": session,
        "gateway, with a token of the provider": gateway,
        "console": console,
    }


def _is_refused(answer: httpx.Response) -> bool:
    assert answer.status_code in (httpx.codes.OK, httpx.codes.UNAUTHORIZED), answer.text
    return answer.status_code == httpx.codes.UNAUTHORIZED


def _to_gateway(method: str, params: Json, token: str) -> Json:
    meta = {
        "io.modelcontextprotocol/protocolVersion": _PROTOCOL,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "leaver", "version": "1"},
    }
    headers = {
        **_bearer(token),
        "Accept": "application/json, text/event-stream",
        "mcp-protocol-version": _PROTOCOL,
        "mcp-method": method,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return {"json": body, "headers": headers}


def _streamed(client: httpx.AsyncClient, leaver: Leaver) -> dict[str, httpx.Request]:
    """Requests for streams by what they tell of."""
    listen = _to_gateway("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, leaver.session)
    cookie = "; ".join(f"{name}={value}" for name, value in leaver.browser.cookies.items())
    return {
        "stream of their run": client.build_request(
            "GET", f"/v1/runs/{leaver.run}/stream", headers=_bearer(leaver.token)
        ),
        "stream of another's run, which says nothing": client.build_request(
            "GET", f"/v1/runs/{leaver.others_run}/stream", headers=_bearer(leaver.token)
        ),
        "stream of the console, which says nothing": client.build_request(
            "GET", f"/console/runs/{leaver.others_run}/stream", headers={"Cookie": cookie}
        ),
        "stream of the gateway": client.build_request("POST", "/mcp", **listen),
    }


async def _refused(ask: Way) -> float:
    """When a request was refused first."""
    while True:
        if await ask():
            return time.monotonic()
        await asyncio.sleep(_PAUSE_S)


async def _ended(way: str, request: httpx.Request, opened: asyncio.Event) -> float:
    """When the stream ended."""
    async with httpx.AsyncClient(trust_env=False, timeout=60.0) as client:
        response = await client.send(request, stream=True)
        assert response.status_code == httpx.codes.OK, (way, response.status_code)
        assert response.headers["content-type"].startswith("text/event-stream"), way
        opened.set()
        async for _ in response.aiter_raw():
            pass
    return time.monotonic()


def deleted_by_the_directory(world: World, leaver: Leaver) -> None:
    world.directory.delete(f"/Users/{leaver.user_id}").raise_for_status()


def deactivated_by_the_directory(world: World, leaver: Leaver) -> None:
    change = {"schemas": [_SCIM_PATCH], "Operations": [{"op": "replace", "path": "active", "value": False}]}
    world.directory.patch(f"/Users/{leaver.user_id}", json=change).raise_for_status()


def deactivated_by_an_admin(world: World, leaver: Leaver) -> None:
    world.told.call("PATCH", f"/users/{leaver.user_id}", {"status": "deactivated"})


Removal = Callable[[World, Leaver], None]
REMOVALS: tuple[Removal, ...] = (deleted_by_the_directory, deactivated_by_the_directory, deactivated_by_an_admin)
