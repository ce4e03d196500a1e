"""MCP servers that come as images: calls, ends and failures of their containers. The engine is a
double on a socket."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

from application.mcp.account_secrets import PersonSecretStore
from application.mcp.installer import McpInstallFailureKind
from application.mcp.ports import McpFailure, McpFailureKind
from domain.ids import McpServerId, UserId
from domain.mcp.given_secrets import GivenSecrets, binding_of_secrets
from domain.mcp.network import ServerNetwork
from domain.mcp.server import Credentials, McpServer
from domain.secrets.secret import SecretRef
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxy_resolver import ProxyResolver
from infrastructure.http.shared_bound import SharedBound
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.containers.engine_api import EngineApi
from infrastructure.mcp.containers.engine_socket import EngineSocket
from infrastructure.mcp.containers.marks import LABEL, ContainerMarks
from infrastructure.mcp.containers.registry_guard import RegistryGuard
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.server_containers import ServerContainers
from tests.builders import ORG, START
from tests.doubles.container_engine import FakeEngine
from tests.doubles.engine_containers import FakeImage, images
from tests.integration.mcp.install.workshop import Workshop, image
from tests.integration.mcp.parts import IN_RUN, SERVERS, a_call, sdk_connections, until

IMAGES = images(
    plain=(sys.executable, "-I", "-S", str(SERVERS / "plain_server.py")),
    odd=(sys.executable, "-I", "-S", str(SERVERS / "odd_server.py")),
    missing=("no-such-program",),
)
LIMITS = {"core": 0, "memory": 512 * 1024**2, "processes": 64}


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeEngine]:
    fake = FakeEngine(tmp_path / "engine.sock")
    fake.registry |= IMAGES
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
def workshop(fake: FakeEngine, tmp_path: Path) -> Workshop:
    registries = RegistryGuard(EgressPolicy(), ProxyResolver(SharedBound(2).of("registries")))
    engine = EngineApi(EngineSocket(lambda: fake.path), registries=registries, user=(1000, 1000))
    return Workshop(home=tmp_path / "home", engine=engine)


def containers(workshop: Workshop, ports: tuple[int, ...] | None = None) -> ServerContainers:
    return ServerContainers(
        engine=workshop.engine,
        marks=ContainerMarks(home=workshop.home),
        directories=workshop.directories,
        limits=LIMITS,
        cpus=1.5,
        ports=ports,
    )


@asynccontextmanager
async def connections_of(workshop: Workshop, **settings: Any) -> AsyncIterator[SdkMcpConnections]:
    contain = settings.pop("contain", containers(workshop).starting)
    async with sdk_connections(launch=workshop.launches.of, contain=contain, **settings) as connections:
        yield connections


async def installed(workshop: Workshop, name: str, **settings: Any) -> McpServer:
    return await workshop.install(image(f"mcp/{name}", **settings))


@pytest.mark.requirement("S1", "B1", "B2")
async def test_a_server_in_a_container_is_installed_called_and_removed(fake: FakeEngine, workshop: Workshop) -> None:
    server = await installed(workshop, "plain", env={"TOKEN": "of-the-server"}, args=("--unused",))
    assert server.installation is not None
    assert server.installation.version == f"latest@{IMAGES['mcp/plain:latest'].digest}"
    async with connections_of(workshop) as connections:
        catalog = await connections.discover(server, IN_RUN, timeout_s=60)
        assert catalog.tools
        (container,) = fake.running()
        assert {"HOME=/data", "TMPDIR=/tmp", "TOKEN=of-the-server"} <= {*container.body["Env"]}
        assert container.body["Cmd"] == ["--unused"]
        assert container.host["NetworkMode"] == "default"
        assert (container.host["Memory"], container.host["PidsLimit"]) == (LIMITS["memory"], LIMITS["processes"])
        data = workshop.directories.data(server)
        assert [mount["Source"] for mount in container.host["Mounts"]] == [str(data.resolve())]
    assert fake.containers == {}


@pytest.mark.requirement("S1", "P3")
async def test_a_container_acts_for_one_person_and_has_a_directory_of_theirs(
    fake: FakeEngine, workshop: Workshop, mocker: MockerFixture
) -> None:
    env = {"TOKEN": SecretRef("person:token")}
    server = await installed(workshop, "plain", env=env, credentials=Credentials.PERSON)
    secrets = mocker.create_autospec(PersonSecretStore, instance=True)
    bound = binding_of_secrets(server.config)
    secrets.load.return_value = GivenSecrets(binding=bound, revision="r", given_at=START, values={"token": "s3cret"})
    people = (UserId("usr_ann"), UserId("usr_ben"))
    async with connections_of(workshop, person_secrets=secrets) as connections:
        for person in people:
            await connections.call_tool(server, replace(IN_RUN, person_id=person), a_call("count"))
        used = {container.host["Mounts"][0]["Source"] for container in fake.running()}
    assert used == {str(workshop.directories.data(server.acting_for(person)).resolve()) for person in people}


@pytest.mark.requirement("S1", "B2")
async def test_the_digest_that_was_installed_is_started_when_the_tag_has_moved(
    fake: FakeEngine, workshop: Workshop
) -> None:
    server = await installed(workshop, "plain")
    fake.registry["mcp/plain:latest"] = FakeImage(digest=f"sha256:{'e' * 64}", command=("no-such-program",))
    async with connections_of(workshop) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60)
        (container,) = fake.running()
        assert container.body["Image"] == f"mcp/plain@{IMAGES['mcp/plain:latest'].digest}"


@pytest.mark.requirement("B2")
async def test_an_image_is_removed_with_the_last_installation_of_it_and_its_containers_at_once(
    fake: FakeEngine, workshop: Workshop
) -> None:
    first = await installed(workshop, "plain")
    second = await workshop.install(replace(image("mcp/plain"), id=McpServerId("mcp_second")))
    async with connections_of(workshop) as connections:
        await connections.discover(second, IN_RUN, timeout_s=60)
        await workshop.installer.uninstall(ORG, first.id)
        assert len(fake.running()) == 1
        assert len(fake.local) == 2
        await workshop.installer.uninstall(ORG, second.id)
        assert (fake.running(), fake.local) == ([], {})


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("name", ["mcp/plain:latest", "mcp/plain:of-the-operator", "operator/built:1"])
async def test_an_image_that_the_engine_had_before_stays_when_its_installations_are_gone(
    fake: FakeEngine, workshop: Workshop, name: str
) -> None:
    fake.local[name] = IMAGES["mcp/plain:latest"]
    first = await installed(workshop, "plain")
    second = await workshop.install(replace(image("mcp/plain"), id=McpServerId("mcp_second")))
    for server in (first, second):
        await workshop.installer.uninstall(ORG, server.id)
    assert fake.local[name] == IMAGES["mcp/plain:latest"]


@pytest.mark.requirement("B2")
async def test_an_image_is_removed_in_whatever_order_its_installations_go(fake: FakeEngine, workshop: Workshop) -> None:
    first = await installed(workshop, "plain")
    second = await workshop.install(replace(image("mcp/plain"), id=McpServerId("mcp_second")))
    await workshop.installer.uninstall(ORG, first.id)
    third = await workshop.install(replace(image("mcp/plain"), id=McpServerId("mcp_third")))
    await workshop.installer.uninstall(ORG, second.id)
    assert len(fake.local) == 2
    await workshop.installer.uninstall(ORG, third.id)
    assert fake.local == {}


@pytest.mark.requirement("B2")
async def test_an_installation_that_begins_while_containers_go_keeps_the_image(
    fake: FakeEngine, workshop: Workshop
) -> None:
    server = await installed(workshop, "plain")

    async def begin() -> None:
        workshop.directories.create("org_other/mcp_other/ins_other")

    fake.hold["GET /containers/json"] = begin
    await workshop.installer.uninstall(ORG, server.id)
    assert len(fake.local) == 2


@pytest.mark.requirement("B2")
async def test_no_installation_begins_while_an_image_is_removed(
    fake: FakeEngine, workshop: Workshop, mocker: MockerFixture
) -> None:
    directories, found = workshop.directories, []

    def look() -> None:
        with directories.building("images") as is_free:  # the lock of `images`
            found.append(is_free)

    def create(location: str) -> Path:
        look()
        return InstallDirectories.create(directories, location)

    async def look_while_removing() -> None:
        look()

    mocker.patch.object(directories, "create", create)
    server = await installed(workshop, "plain")
    (image_id,) = {each.id for each in fake.local.values()}
    fake.hold[f"DELETE /images/{image_id}"] = look_while_removing
    await workshop.installer.uninstall(ORG, server.id)
    assert found == [False, False]


@pytest.mark.requirement("B2")
async def test_an_image_that_an_installation_under_way_may_have_stays(fake: FakeEngine, workshop: Workshop) -> None:
    server = await installed(workshop, "plain")
    workshop.directories.create("org_other/mcp_other/ins_other")
    await workshop.installer.uninstall(ORG, server.id)
    assert len(fake.local) == 2


@pytest.mark.requirement("B2")
async def test_a_server_is_uninstalled_also_while_the_engine_is_gone(fake: FakeEngine, workshop: Workshop) -> None:
    server = await installed(workshop, "plain")
    await fake.lose()
    await workshop.installer.uninstall(ORG, server.id)
    assert workshop.leftovers(server) == []


@pytest.mark.requirement("S2")
async def test_a_forgotten_server_has_no_container(fake: FakeEngine, workshop: Workshop) -> None:
    server = await installed(workshop, "plain")
    async with connections_of(workshop) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60)
        await connections.forget(ORG, server.id)
        await until(lambda: not fake.containers)
        assert len(fake.removed) == 1


@pytest.mark.requirement("S2")
async def test_a_connection_cancelled_while_its_container_starts_leaves_none(
    fake: FakeEngine, workshop: Workshop
) -> None:
    server = await installed(workshop, "plain")
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        reached.set()
        await goes_on.wait()

    fake.hold["POST /containers/…/start"] = hold
    async with connections_of(workshop) as connections:
        discovering = asyncio.create_task(connections.discover(server, IN_RUN, timeout_s=60))
        await reached.wait()
        discovering.cancel()
        forgetting = asyncio.create_task(connections.forget(ORG, server.id))
        goes_on.set()
        await forgetting
        with pytest.raises(asyncio.CancelledError):
            await discovering
        await until(lambda: not fake.containers)


@pytest.mark.requirement("S1")
async def test_a_lost_engine_is_named_in_the_failure_of_a_call(fake: FakeEngine, workshop: Workshop) -> None:
    server = await installed(workshop, "plain")
    async with connections_of(workshop) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60)
        await fake.lose()
        await until(lambda: "the server was lost with its container engine" in connections.logs(server))
        with pytest.raises(McpFailure) as failed:
            await connections.call_tool(server, IN_RUN, a_call("echo"))
        # The call may meet the connection while it ends.
        assert failed.value.kind in (McpFailureKind.NOT_CONNECTED, McpFailureKind.CONNECTION_LOST)
        assert "container engine" in failed.value.detail
        await fake.start()
        await connections.discover(server, IN_RUN, timeout_s=60)
        await until(lambda: len(fake.running()) == 1)


@pytest.mark.requirement("S1")
async def test_a_container_that_took_too_much_memory_says_so(fake: FakeEngine, workshop: Workshop) -> None:
    server = await installed(workshop, "plain")
    async with connections_of(workshop) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60)
        (container,) = fake.running()
        container.out_of_memory = True
        assert container.process is not None
        container.process.kill()
        await until(lambda: "more memory than it may" in connections.logs(server))


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    ("name", "detail", "logged"),
    [
        ("missing", "refused a request", "executable file not found"),
        ("plain", "install the server again", "No such image"),
    ],
)
async def test_a_container_that_does_not_start_says_why(
    fake: FakeEngine, workshop: Workshop, name: str, detail: str, logged: str
) -> None:
    server = await installed(workshop, name)
    if name == "plain":
        fake.local.clear()
    async with connections_of(workshop) as connections:
        with pytest.raises(McpFailure) as failed:
            await connections.discover(server, IN_RUN, timeout_s=60)
        assert detail in failed.value.detail
        assert logged in connections.logs(server)
    assert fake.containers == {}


@pytest.mark.requirement("S1")
async def test_numbers_of_ports_start_no_container_and_none_gives_it_no_network(
    fake: FakeEngine, workshop: Workshop
) -> None:
    server = await installed(workshop, "plain")
    async with connections_of(workshop, contain=containers(workshop, (443,)).starting) as connections:
        with pytest.raises(McpFailure) as failed:
            await connections.discover(server, IN_RUN, timeout_s=60)
        assert "DRAGOMAN_MCP_PORTS" in failed.value.detail
    async with connections_of(workshop, contain=containers(workshop, ()).starting) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60)
        assert fake.running()[0].host["NetworkMode"] == "none"
    closed = replace(server, config=replace(server.config, network=ServerNetwork.NONE))
    async with connections_of(workshop, contain=containers(workshop, (443,)).starting) as connections:
        await connections.discover(closed, IN_RUN, timeout_s=60)
        assert fake.running()[0].host["NetworkMode"] == "none"


@pytest.mark.requirement("S2")
async def test_containers_of_a_killed_service_are_ended_and_those_of_others_are_not(
    fake: FakeEngine, workshop: Workshop, tmp_path: Path
) -> None:
    server = await installed(workshop, "plain")
    marks = ContainerMarks(home=workshop.home)
    async with connections_of(workshop) as connections:
        await connections.discover(server, IN_RUN, timeout_s=60)
        (own,) = fake.running()
        assert await marks.end_leftovers(workshop.engine) == 0
        installation, _, mark = own.body["Labels"][LABEL].partition("/")
        pid, _, _ = mark.split(":")
        own.body["Labels"][LABEL] = f"{installation}/{pid}:1:1"  # as of an earlier process with this id
        other = tmp_path / "other"
        other.mkdir()
        assert await ContainerMarks(home=other).end_leftovers(workshop.engine) == 0
        assert await marks.end_leftovers(workshop.engine) == 1
        assert fake.containers == {}


@pytest.mark.requirement("B2")
async def test_installing_without_an_engine_or_an_image_says_what_is_missing(
    fake: FakeEngine, workshop: Workshop, tmp_path: Path
) -> None:
    unknown = await workshop.failure_of(image("mcp/unknown"))
    assert unknown.kind is McpInstallFailureKind.REGISTRY_REFUSED
    assert (await workshop.failure_of(image("mcp/plain", "none"))).kind is McpInstallFailureKind.PACKAGE_NOT_FOUND
    alone = Workshop(home=tmp_path / "alone")
    missing = await alone.failure_of(image("mcp/plain"))
    assert missing.kind is McpInstallFailureKind.RUNTIME_MISSING
    assert "DRAGOMAN_MCP_CONTAINER_ENGINE" in missing.detail


@pytest.mark.requirement("S1", "B2")
@pytest.mark.parametrize("pinned", [False, True])
async def test_another_machine_restores_the_recorded_digest_when_the_tag_has_moved(
    fake: FakeEngine, workshop: Workshop, tmp_path: Path, pinned: bool
) -> None:
    digest = IMAGES["mcp/plain:latest"].digest
    server = await installed(workshop, "plain", **({"version": digest} if pinned else {}))
    assert server.installation is not None
    fake.registry["mcp/plain:old"] = fake.registry["mcp/plain:latest"]
    fake.registry["mcp/plain:latest"] = IMAGES["mcp/odd:latest"]
    fake.local.clear()
    there = Workshop(home=tmp_path / "there", engine=workshop.engine)
    assert await there.installer.restore(server)
    assert there.launches.of(server).command == f"mcp/plain@{digest}"
    here = workshop.directories.manifest(server.installation.location)
    assert there.directories.manifest(server.installation.location) == here


@pytest.mark.requirement("S1")
async def test_what_a_registry_says_of_a_failure_is_in_the_log_of_the_service_only(
    fake: FakeEngine, workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    fake.refuses["POST /images/create"] = (500, 'invalid character: "internal page"')
    server = image("mcp/plain")
    failure = await workshop.failure_of(server)
    assert "internal page" not in failure.detail + workshop.installer.log(server)
    assert "internal page" in caplog.text


@pytest.mark.requirement("B2")
async def test_the_log_of_an_installation_has_the_engines_progress(workshop: Workshop) -> None:
    server = await installed(workshop, "odd")
    assert "5e1b2c Downloading" in workshop.installer.log(server)
    manifest = workshop.directories.manifest(server.installation.location if server.installation else "")
    assert manifest is not None
    assert manifest.hashes == {"mcp/odd": [IMAGES["mcp/odd:latest"].digest]}
    assert workshop.launches.of(replace(server)).command == f"mcp/odd@{IMAGES['mcp/odd:latest'].digest}"
