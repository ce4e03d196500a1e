"""Servers of others work confined, on each profile that this machine holds."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from application.mcp.ports import McpCall
from domain.json_value import JsonValue
from infrastructure.confinement.grants import Grants
from infrastructure.confinement.sandbox import Sandbox, SandboxMode
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.server_confinement import ServerConfinement
from infrastructure.mcp.transports.process_limits import DEFAULT_PROCESS_LIMITS, parse_process_limits
from tests.completeness import beyond
from tests.integration.confinement.world import PROFILES, held_here, machine_of
from tests.integration.mcp.parts import (
    EVERYTHING,
    IN_RUN,
    NODE_SERVERS,
    sdk_connections,
    started,
    text_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    command: tuple[str, ...]
    tool: str
    arguments: dict[str, JsonValue]
    answer: str


MEMORY: dict[str, JsonValue] = {"entities": [{"name": "Ann", "entityType": "person", "observations": ["sails"]}]}
CASES = {
    "time": Case(
        command=(sys.executable, "-m", "mcp_server_time"),
        tool="get_current_time",
        arguments={"timezone": "Asia/Tokyo"},
        answer="Asia/Tokyo",
    ),
    "everything": Case(
        command=("node", EVERYTHING, "stdio"), tool="echo", arguments={"message": "hello"}, answer="Echo: hello"
    ),
    "memory": Case(
        command=("node", str(NODE_SERVERS / "server-memory" / "dist" / "index.js")),
        tool="create_entities",
        arguments=MEMORY,
        answer="Ann",
    ),
}


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", CASES)
async def test_a_popular_server_works(name: str, profile: str, tmp_path: Path) -> None:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    case = CASES[name]
    sandbox = Sandbox(
        mode=SandboxMode.AUTO,
        private=(tmp_path,),
        granted=Grants(),
        ports=None,
        user_home=Path.home(),
        probe=lambda: machine_of(profile),
    )
    directories = InstallDirectories(tmp_path / "servers")
    data = directories.data(started(*case.command))
    server = started(*case.command, env={"MEMORY_FILE_PATH": f"{data}/memory.json"})
    confinement = ServerConfinement(
        sandbox=sandbox,
        directories=directories,
        search_path=os.environ["PATH"],
        runtime=(Path(sys.prefix), Path(sys.base_prefix)),
    )
    limits = parse_process_limits(DEFAULT_PROCESS_LIMITS)
    async with sdk_connections(confine=confinement.of_server, limits=limits) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60.0)
        reply = await connections.call_tool(
            server, IN_RUN, McpCall(tool_name=case.tool, arguments=case.arguments, timeout_s=60.0)
        )
        assert case.answer in text_of(reply)
