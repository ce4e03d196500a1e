"""What the process of one person can leave for that of another: nothing, on each profile that this
machine holds."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from application.mcp.ports import ConnectionScope, McpCall
from domain.ids import UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets, binding_of_secrets
from domain.mcp.server import Credentials, Isolation, McpServer
from domain.secrets.secret import SecretRef
from infrastructure.confinement.grants import Grants
from infrastructure.confinement.sandbox import Sandbox, SandboxMode
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.person_files import LocalPersonFiles
from infrastructure.mcp.install.server_confinement import ServerConfinement
from infrastructure.mcp.transports.launch import Launch
from tests.builders import ORG, START
from tests.completeness import beyond
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.state import InMemoryState
from tests.integration.confinement.world import PROFILES, held_here, machine_of
from tests.integration.mcp.parts import ISOLATED_PYTHON, PATIENCE_S, SERVERS, sdk_connections, started, text_of
from tests.people_builders import a_user

pytestmark = pytest.mark.requirement("P3", "S1")

ANN, BEN = UserId("usr_ann"), UserId("usr_ben")
TOKENS = {ANN: "tok-ann", BEN: "tok-ben"}


@dataclass
class World:
    root: Path
    server: McpServer
    directories: InstallDirectories
    connections: SdkMcpConnections

    @property
    def installation(self) -> Path:
        return self.root / "servers" / "org_a" / "srv_a" / "ins_a"

    def data(self, person: UserId | None) -> Path:
        return self.directories.data(self.server.acting_for(person))

    async def says(self, person: UserId, tool: str, **arguments: str) -> str:
        scope = ConnectionScope(organization_id=ORG, person_id=person)
        return text_of(
            await self.connections.call_tool(
                self.server, scope, McpCall(tool_name=tool, arguments={**arguments}, timeout_s=PATIENCE_S)
            )
        )


@asynccontextmanager
async def a_world(root: Path, mode: SandboxMode, profile: str) -> AsyncIterator[World]:
    """An installed server, and Ann and Ben with secrets for it."""
    sandbox = Sandbox(
        mode=mode,
        private=(root,),
        granted=Grants(),
        ports=None,
        user_home=Path.home(),
        probe=lambda: machine_of(profile),
    )
    directories = InstallDirectories(root / "servers")
    confinement = ServerConfinement(
        sandbox=sandbox,
        directories=directories,
        search_path=os.environ["PATH"],
        runtime=(Path(sys.prefix), Path(sys.base_prefix)),
    )
    state = InMemoryState()
    secrets = InMemoryPersonSecretStore(state)
    server = started(
        *ISOLATED_PYTHON,
        env={"TOKEN": SecretRef("person:token")},
        credentials=Credentials.PERSON,
        isolation=Isolation.SHARED,
    )
    state.servers[server.id] = server
    for person, token in TOKENS.items():
        state.users[person] = a_user(person, subject=person)
        given = GivenSecrets(
            binding=binding_of_secrets(server.config), revision=person, given_at=START, values={"token": token}
        )
        assert await secrets.save(AccountOwner(ORG, server.id, person), partial(_given, given))
    own = root / "servers" / "org_a" / "srv_a" / "ins_a" / "venv"
    own.mkdir(parents=True)
    (own / "program.py").write_text((SERVERS / "person_server.py").read_text())

    def launch(server: McpServer) -> Launch:
        command, *args = (*ISOLATED_PYTHON, str(own / "program.py"))
        return Launch(command=command, args=tuple(args), place=own.parent, own=(own,))

    async with sdk_connections(person_secrets=secrets, launch=launch, confine=confinement.of_server) as connections:
        yield World(root=root, server=server, directories=directories, connections=connections)


def _given(given: GivenSecrets, _: GivenSecrets | None) -> GivenSecrets:
    return given


@pytest.mark.parametrize("profile", PROFILES)
async def test_no_process_leaves_or_finds_a_file_of_another_person(profile: str, tmp_path: Path) -> None:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    async with a_world(tmp_path, SandboxMode.AUTO, profile) as world:
        of_ann, of_ben, of_all = (world.data(person) for person in (ANN, BEN, None))
        assert await world.says(ANN, "home") == f"{of_ann} {of_ann / 'tmp'}"
        assert await world.says(ANN, "keep", path=str(of_ann / "left")) == "kept"
        assert await world.says(ANN, "read", path=str(of_ann / "left")) == "nna-kot"
        assert await world.says(BEN, "whoami") == "neb-kot"
        assert await world.says(BEN, "read", path=str(of_ann / "left")) != "nna-kot"
        environment = f"/proc/{await world.says(BEN, 'pid')}/environ"
        assert "neb-kot" not in await world.says(ANN, "read", path=environment)
        for shared in (of_ben, of_all, world.installation, world.installation / "venv", tmp_path):
            assert await world.says(ANN, "keep", path=str(shared / "left")) != "kept"
            assert not (shared / "left").exists()
        program = world.installation / "venv" / "program.py"
        before = program.read_text()
        assert await world.says(ANN, "keep", path=str(program)) != "kept"
        assert program.read_text() == before


async def test_without_confinement_each_person_has_a_directory_all_the_same(tmp_path: Path) -> None:
    async with a_world(tmp_path, SandboxMode.OFF, PROFILES[0]) as world:
        for person in TOKENS:
            data = world.data(person)
            assert await world.says(person, "home") == f"{data} {data / 'tmp'}"


async def test_the_directory_of_a_person_is_removed_alone_and_all_with_the_server(tmp_path: Path) -> None:
    directories = InstallDirectories(tmp_path)
    server = started("server", env={"T": SecretRef("person:t")}, credentials=Credentials.PERSON)
    of_ann, of_ben = (directories.data(server.acting_for(person)) for person in TOKENS)
    files = LocalPersonFiles(directories=directories, person_secrets=InMemoryPersonSecretStore(InMemoryState()))
    await files.remove(server)
    await files.remove(server.acting_for(ANN))
    await files.remove(server.acting_for(ANN))
    assert (of_ann.exists(), of_ben.exists()) == (False, True)
    directories.remove_all(ORG, server.id)
    assert not of_ben.exists()
