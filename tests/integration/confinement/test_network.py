"""A server with an allowlist of hosts reaches these through our proxy, and nothing else, on each
profile with a network of its own. A server without network reaches nothing on any profile."""

import asyncio
import json
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from domain.mcp.network import HostAllowlist, ServerNetwork
from infrastructure.confinement.grants import Grants
from infrastructure.confinement.plan import BUBBLEWRAP, LANDLOCK, NAMESPACES
from infrastructure.confinement.sandbox import CannotConfineError, Machine, Sandbox, SandboxMode
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.egress_proxy import EgressProxy
from infrastructure.http.shared_bound import SharedBound
from infrastructure.mcp.transports.egress_link import EgressLink
from infrastructure.mcp.transports.stdio_process import StdioCommand
from tests.completeness import beyond
from tests.integration.confinement import network_attempts
from tests.integration.confinement.test_environment import output
from tests.integration.confinement.world import MACHINE, PROFILES, World, a_world, held_here

pytestmark = pytest.mark.requirement("S1")

HERE, PRIVATE = "127.0.0.1", "10.1.2.3"
PROXY = {"HTTPS_PROXY": "http://127.0.0.1:3128"}


class Names(AbstractResolver):
    """Every name is this machine, but for one of another network."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = PRIVATE if host == "private.example" else HERE
        return [ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    past: dict[str, str]
    through: dict[str, str]
    refused: list[str]
    received: list[str]


async def _answer(received: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    body = (await reader.readexactly(4)).decode() if head.startswith("POST") else ""
    received.append(head + body)
    writer.write(b"HTTP/1.0 200 OK\r\n\r\nend of the answer")
    writer.close()


async def attempted_in(world: World, options: tuple[str, ...]) -> Attempted:
    refused: list[str] = []
    received: list[str] = []
    target = await asyncio.start_server(lambda *streams: _answer(received, *streams), HERE, 0)
    port = target.sockets[0].getsockname()[1]
    entries = (f"allowed.example:{port}", f"private.example:{port}")
    proxy = EgressProxy(
        permits=HostAllowlist(entries).permits,
        egress=EgressPolicy(["127.0.0.0/8"]),
        on_refused=refused.append,
        bound=SharedBound(64).of("org_1"),
        resolver=Names(),
    )
    link = EgressLink(proxy)
    args = ("-I", "-S", network_attempts.__file__, json.dumps({"port": port, "abstract": world.abstract}))
    command = StdioCommand(
        command=sys.executable,
        args=args,
        env=PROXY,
        cwd=world.own,
        confinement=(*options, *link.options),
        handed=(link.fd,),
    )
    try:
        found = json.loads(await output(command, on_started=link.begin))
    finally:
        await link.close()
        target.close()
        await target.wait_closed()
    return Attempted(past=found["past"], through=found["through"], refused=refused, received=received)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="module", params=[NAMESPACES, BUBBLEWRAP])
def attempted(request: pytest.FixtureRequest, world: World) -> Attempted:
    profile = cast("str", request.param)
    if not held_here(profile) or not MACHINE.networks:
        pytest.skip(beyond(f"this machine does not hold networks of processes alone in the profile {profile}"))
    options = world.options(profile, network=ServerNetwork.ALLOWLIST)
    return asyncio.run(attempted_in(world, options))


@pytest.mark.parametrize("attempt", network_attempts.PAST_THE_PROXY)
def test_nothing_leads_past_the_proxy(attempt: str, attempted: Attempted) -> None:
    assert attempted.past[attempt].startswith("denied"), attempted.past[attempt]


@pytest.mark.parametrize("attempt", network_attempts.THROUGH_THE_PROXY)
def test_the_proxy_refuses(attempt: str, attempted: Attempted) -> None:
    status, _, text = attempted.through[attempt].partition("|")
    assert status in ("HTTP/1.1 403 Forbidden", "HTTP/1.1 400 Bad Request")
    assert text.startswith("Dragoman refused the connection: ")


def test_allowed_hosts_are_reached_by_tunnel_and_by_request(attempted: Attempted) -> None:
    assert {name: attempted.through[name] for name in network_attempts.ALLOWED} == {
        "a tunnel": "HTTP/1.1 200 Connection established|HTTP/1.0 200 OK\r\n\r\nend of the answer",
        "a request": "HTTP/1.0 200 OK|end of the answer",
        "a body": "HTTP/1.0 200 OK|end of the answer",
    }
    tunnelled, asked, posted = attempted.received
    assert tunnelled.startswith("GET /tunnelled HTTP/1.0\r\n")
    assert asked.startswith("GET /asked?a=b HTTP/1.1\r\nHost: ALLOWED.example.:")
    assert "proxy-authorization" not in asked.lower()
    assert posted.endswith("\r\n\r\nbody")


def test_each_refusal_has_its_reason(attempted: Attempted) -> None:
    assert len(attempted.refused) == len(network_attempts.THROUGH_THE_PROXY)
    assert any(reason.startswith("other.example:") and "allowlist" in reason for reason in attempted.refused)
    assert any("private.example is not public" in reason and PRIVATE in reason for reason in attempted.refused)


@pytest.mark.parametrize("profile", PROFILES)
def test_without_network_no_socket_leads_anywhere(profile: str, world: World) -> None:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    script = """
import json, socket
found = {}
for family in (socket.AF_INET, socket.AF_INET6):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(family, kind).connect(("127.0.0.1", PORT))
        except OSError as exc:
            found[f"{family} {kind}"] = exc.errno
print(json.dumps(found))
""".replace("PORT", str(world.port))
    command = StdioCommand(
        command=sys.executable,
        args=("-I", "-S", "-c", script),
        cwd=world.own,
        confinement=world.options(profile, network=ServerNetwork.NONE),
    )
    found: dict[str, Any] = json.loads(asyncio.run(output(command)))
    assert len(found) == 4


@pytest.mark.parametrize(
    ("mode", "machine"),
    [
        (SandboxMode.AUTO, Machine(landlock=7, namespaces=False, bubblewrap=None, networks=False)),
        (SandboxMode.AUTO, Machine(landlock=7, namespaces=True, bubblewrap=None, networks=False)),
        (SandboxMode.OFF, Machine(landlock=7, namespaces=True, bubblewrap=None, networks=True)),
    ],
)
def test_where_an_allowlist_cannot_be_held_the_server_is_not_started(mode: SandboxMode, machine: Machine) -> None:
    sandbox = Sandbox(
        mode=mode,
        private=(Path("/nowhere/home"),),
        granted=Grants(),
        ports=None,
        user_home=None,
        probe=lambda: machine,
    )
    with pytest.raises(CannotConfineError):
        asyncio.run(sandbox.options(Grants(), network=ServerNetwork.ALLOWLIST))


def test_the_profile_without_namespaces_starts_nothing_with_a_proxy(world: World) -> None:
    if not held_here(LANDLOCK):
        pytest.skip(beyond("this machine does not hold the profile landlock"))
    command = StdioCommand(command="true", cwd=world.own, confinement=(*world.options(LANDLOCK), "--proxy", "9"))
    with pytest.raises(AssertionError, match="no separate network"):
        asyncio.run(output(command))
