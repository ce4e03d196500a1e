"""The contract of `ContainerEngine`, over the API as Docker has it and as Podman has it."""

import asyncio
import base64
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from domain.mcp.images import OciImage, oci_image
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxy_resolver import Addresses, ProxyResolver
from infrastructure.http.shared_bound import SharedBound
from infrastructure.mcp.containers.engine import Container, ContainerEnd, ContainerSpec, EngineError, EngineFault
from infrastructure.mcp.containers.engine_api import EngineApi
from infrastructure.mcp.containers.engine_places import engine_socket
from infrastructure.mcp.containers.engine_socket import EngineSocket
from infrastructure.mcp.containers.output_frames import OutputFrames
from infrastructure.mcp.containers.registry_guard import RegistryGuard
from tests.doubles.container_engine import FakeEngine
from tests.doubles.engine_containers import images
from tests.integration.mcp.parts import until

LABEL = "test.label"
PYTHON = (sys.executable, "-I", "-S", "-c")
ECHO = (
    "import sys; sys.stderr.write('begun'); sys.stderr.flush(); [print(line.strip(), flush=True) for line in sys.stdin]"
)
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
IMAGES = images(echo=(*PYTHON, ECHO), deaf=(*PYTHON, DEAF), late=("no-such-program",))


class Names(AbstractResolver):
    """What names of registries resolve to."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        addresses = {"public.example": ["93.184.216.34"], "inside.example": ["93.184.216.34", "10.1.2.3"]}.get(host)
        if addresses is None:
            raise OSError("no address")
        return [
            ResolveResult(hostname=host, host=each, port=port, family=socket.AF_INET, proto=0, flags=0)
            for each in addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


REGISTRIES = RegistryGuard(EgressPolicy(), Names())


@pytest.fixture(params=["docker", "podman"])
async def fake(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FakeEngine]:
    fake = FakeEngine(tmp_path / "engine.sock", podman=request.param == "podman", rootless=request.param == "podman")
    fake.registry |= IMAGES
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
def engine(fake: FakeEngine) -> EngineApi:
    return EngineApi(EngineSocket(lambda: fake.path), registries=REGISTRIES, user=(1000, 1001))


def inside(host: str) -> Addresses:
    return ((socket.AF_INET, "127.0.0.1"),)


def ignored(_: str) -> None:
    """Progress that does not interest."""


async def spec_of(engine: EngineApi, name: str, data: Path, *, mark: str = "mine") -> ContainerSpec:
    image = oci_image(f"mcp/{name}", None)
    return ContainerSpec(
        image=image.pinned((await engine.pull(image, ignored)).digest),
        args=(),
        environment={"A": "b=c"},
        data=data,
        memory=256 * 1024**2,
        processes=32,
        cpus=0.5,
        network=False,
        labels={LABEL: mark},
    )


async def outputs_of(container: Container, *, until: bytes = b"") -> tuple[bytes, bytes]:
    """Stdout and stderr to their end, or until stdout has a text."""
    out, err = bytearray(), bytearray()
    frames = OutputFrames(out.extend, err.extend)
    loop = asyncio.get_running_loop()
    while not (until and until in out) and (data := await loop.sock_recv(container.attached, 65_536)):
        frames.feed(data)
    return bytes(out), bytes(err)


@pytest.mark.requirement("S1")
async def test_a_pulled_image_is_known_by_its_digest(fake: FakeEngine, engine: EngineApi) -> None:
    lines: list[str] = []
    pulled = await engine.pull(oci_image("mcp/echo", None), lines.append)
    assert (pulled.digest, pulled.was_there) == (IMAGES["mcp/echo:latest"].digest, False)
    assert "5e1b2c Downloading" in lines
    assert await engine.pull(oci_image(f"mcp/echo@{pulled.digest}", None), ignored) == replace(pulled, was_there=True)
    assert fake.asked.count("POST /images/create") == 2


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    ("image", "fault"),
    [
        (oci_image("mcp/none", None), EngineFault.REFUSED),
        (oci_image("mcp/echo", "none"), EngineFault.NOT_FOUND),
        (OciImage(repository="mcp/echo", tag="latest", digest=f"sha256:{'f' * 64}"), EngineFault.NOT_FOUND),
    ],
)
async def test_an_image_that_the_registry_does_not_give_is_refused(
    fake: FakeEngine, engine: EngineApi, image: OciImage, fault: EngineFault
) -> None:
    with pytest.raises(EngineError) as failed:
        await engine.pull(image, ignored)
    assert failed.value.fault is fault
    assert failed.value.said
    assert image.repository not in str(failed.value)
    assert fake.local == {}


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    "registry",
    [
        "localhost",
        "localhost:5000",
        "169.254.169.254",
        "127.1:2375",
        "0x7f.1",
        "2130706433:80",
        "inside.example",
        "INSIDE.example",
    ],
)
async def test_a_registry_inside_is_not_requested(fake: FakeEngine, registry: str) -> None:
    registries = RegistryGuard(EgressPolicy(), ProxyResolver(SharedBound(2).of("a"), look_up=inside))
    engine = EngineApi(EngineSocket(lambda: fake.path), registries=registries, user=(1000, 1001))
    with pytest.raises(EngineError) as failed:
        await engine.pull(oci_image(f"{registry}/time", None), ignored)
    assert failed.value.fault is EngineFault.REFUSED
    assert fake.asked == []


@pytest.mark.requirement("S1")
async def test_a_registry_is_requested_if_all_its_addresses_are_permitted(fake: FakeEngine, engine: EngineApi) -> None:
    fake.registry["public.example/echo:latest"] = fake.registry["inside.example/echo:latest"] = IMAGES[
        "mcp/echo:latest"
    ]
    await engine.pull(oci_image("public.example/echo", None), ignored)
    for name, fault in {"inside": EngineFault.REFUSED, "unknown": EngineFault.REGISTRY_UNREACHABLE}.items():
        with pytest.raises(EngineError) as failed:
            await engine.pull(oci_image(f"{name}.example/echo", None), ignored)
        assert failed.value.fault is fault
    allowing = RegistryGuard(EgressPolicy(["inside.example"]), Names())
    allowed = EngineApi(EngineSocket(lambda: fake.path), registries=allowing, user=(1000, 1001))
    await allowed.pull(oci_image("inside.example/echo", None), ignored)
    assert fake.asked.count("POST /images/create") == 2


@pytest.mark.requirement("S1")
async def test_the_engine_gets_empty_credentials_so_that_it_takes_none_of_its_user(
    fake: FakeEngine, engine: EngineApi
) -> None:
    await engine.pull(oci_image("mcp/echo", None), ignored)
    assert [base64.b64decode(sent or "") for sent in fake.credentials] == [b"{}"]


@pytest.mark.requirement("S1")
async def test_a_registry_that_cannot_be_reached_is_told_apart(fake: FakeEngine, engine: EngineApi) -> None:
    fake.refuses["POST /images/create"] = (500, "Get: dial tcp: lookup registry: no such host")
    with pytest.raises(EngineError) as failed:
        await engine.pull(oci_image("mcp/echo", None), ignored)
    assert failed.value.fault is EngineFault.REGISTRY_UNREACHABLE


@pytest.mark.requirement("S1")
async def test_a_container_answers_on_its_own_streams_and_ends_with_its_input(
    engine: EngineApi, fake: FakeEngine, tmp_path: Path
) -> None:
    container = await engine.start(await spec_of(engine, "echo", tmp_path))
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(container.attached, b"hello\n")
    assert (await outputs_of(container, until=b"hello"))[0] == b"hello\n"
    container.attached.shutdown(socket.SHUT_WR)
    assert await outputs_of(container) in ((b"", b"begun"), (b"", b""))
    assert await container.ended() == ContainerEnd(status=0, out_of_memory=False)
    container.attached.close()
    await container.remove()
    assert fake.containers == {}


@pytest.mark.requirement("S1")
async def test_volumes_of_an_image_are_bounded_and_its_health_check_does_not_run(
    engine: EngineApi, fake: FakeEngine, tmp_path: Path
) -> None:
    volumes = ("/var/cache/", "/data", "/tmp", "/srv")
    fake.registry["mcp/full:latest"] = replace(IMAGES["mcp/echo:latest"], volumes=volumes)
    container = await engine.start(await spec_of(engine, "full", tmp_path))
    (created,) = fake.containers.values()
    bounds = {mount["Target"]: mount.get("TmpfsOptions", {}).get("SizeBytes") for mount in created.host["Mounts"]}
    assert bounds == {"/data": None, "/var/cache": 64 * 1024**2, "/srv": 64 * 1024**2}
    assert created.body["Healthcheck"] == {"Test": ["NONE"]}
    container.attached.close()
    fake.registry["mcp/many:latest"] = replace(
        IMAGES["mcp/deaf:latest"], volumes=tuple(f"/v{number}" for number in range(17))
    )
    with pytest.raises(EngineError, match="more than 16 volumes"):
        await engine.start(await spec_of(engine, "many", tmp_path))


@pytest.mark.requirement("S1")
async def test_a_container_has_no_more_than_its_specification(
    engine: EngineApi, fake: FakeEngine, tmp_path: Path
) -> None:
    spec = replace(await spec_of(engine, "echo", tmp_path), args=("--flag",))
    container = await engine.start(spec)
    ((created,),) = (fake.containers.values(),)
    host = created.host
    assert created.body["Image"] == f"mcp/echo@{IMAGES['mcp/echo:latest'].digest}"
    assert created.body["Cmd"] == ["--flag"]
    assert created.body["Env"] == ["A=b=c"]
    assert created.body["User"] == ("0:0" if fake.rootless else "1000:1001")
    assert (host["ReadonlyRootfs"], host["Privileged"], host["NetworkMode"]) == (True, False, "none")
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (256 * 1024**2, 256 * 1024**2, 32)
    assert host["NanoCpus"] == 500_000_000
    assert host["LogConfig"]["Type"] == "none"
    assert [(mount["Source"], mount["Target"]) for mount in host["Mounts"]] == [(str(tmp_path), "/data")]
    container.attached.close()
    await container.remove()


@pytest.mark.requirement("S1")
async def test_a_service_of_root_gives_its_containers_another_user(fake: FakeEngine, tmp_path: Path) -> None:
    changed: list[tuple[Path, int, int]] = []
    engine = EngineApi(
        EngineSocket(lambda: fake.path), registries=REGISTRIES, user=(0, 0), chown=lambda *given: changed.append(given)
    )
    container = await engine.start(await spec_of(engine, "echo", tmp_path))
    ((created,),) = (fake.containers.values(),)
    nobody = [] if fake.rootless else [(tmp_path, 65534, 65534)]
    assert (created.body["User"], changed) == ("0:0" if fake.rootless else "65534:65534", nobody)
    container.attached.close()
    await container.remove()


@pytest.mark.requirement("S2")
async def test_a_container_that_ignores_signals_is_removed(engine: EngineApi, fake: FakeEngine, tmp_path: Path) -> None:
    container = await engine.start(await spec_of(engine, "deaf", tmp_path))
    await outputs_of(container, until=b"deaf")
    await container.terminate()
    assert len(fake.running()) == 1
    ending = asyncio.create_task(container.ended())
    await container.remove()
    assert await ending == ContainerEnd(status=137, out_of_memory=False)
    assert (fake.containers, [each.state for each in fake.removed]) == ({}, ["exited"])
    container.attached.close()
    await container.terminate()
    await container.remove()


@pytest.mark.requirement("S2")
@pytest.mark.parametrize(
    "refused",
    ["POST /containers/create", "POST /containers/…/attach", "POST /containers/…/start"],
)
async def test_nothing_is_left_of_a_container_that_does_not_start(
    engine: EngineApi, fake: FakeEngine, tmp_path: Path, refused: str
) -> None:
    spec = await spec_of(engine, "echo", tmp_path)
    fake.refuses[refused] = (500, "something broke")
    with pytest.raises(EngineError) as failed:
        await engine.start(spec)
    assert failed.value.fault is EngineFault.REFUSED
    assert fake.containers == {}


@pytest.mark.requirement("S2")
async def test_a_program_that_is_missing_or_an_image_that_is_gone_is_told(
    engine: EngineApi, fake: FakeEngine, tmp_path: Path
) -> None:
    with pytest.raises(EngineError) as failed:
        await engine.start(await spec_of(engine, "late", tmp_path))
    assert "executable file not found" in failed.value.said
    spec = await spec_of(engine, "echo", tmp_path)
    fake.local.clear()
    with pytest.raises(EngineError) as failed:
        await engine.start(spec)
    assert failed.value.fault is EngineFault.NOT_FOUND
    assert fake.containers == {}


@pytest.mark.requirement("S2")
async def test_containers_are_found_by_their_label(engine: EngineApi, fake: FakeEngine, tmp_path: Path) -> None:
    spec = await spec_of(engine, "echo", tmp_path)
    containers = [
        await engine.start(replace(spec, labels=labels)) for labels in ({LABEL: "a"}, {LABEL: "b"}, {"x": "a"})
    ]
    assert await engine.remove_all(LABEL, lambda value: value == "a") == 1
    assert sorted(each.body["Labels"].get(LABEL, "") for each in fake.containers.values()) == ["", "b"]
    for container in containers:
        container.attached.close()
        await container.remove()


@pytest.mark.requirement("B2")
async def test_an_image_is_removed_unless_a_container_or_a_name_of_another_repository_has_it(
    engine: EngineApi, fake: FakeEngine, tmp_path: Path
) -> None:
    spec = await spec_of(engine, "echo", tmp_path)
    container = await engine.start(spec)
    assert not await engine.remove_image(spec.image)
    container.attached.close()
    await container.remove()
    fake.local["mine/echo:latest"] = fake.local[spec.image]
    assert not await engine.remove_image(spec.image)
    del fake.local["mine/echo:latest"]
    assert await engine.remove_image(spec.image)
    assert fake.local == {}
    assert await engine.remove_image(spec.image)


@pytest.mark.requirement("S2")
async def test_what_a_lost_engine_did_not_remove_is_removed_later_and_no_start_waits_for_it(
    fake: FakeEngine, tmp_path: Path
) -> None:
    engine = EngineApi(EngineSocket(lambda: fake.path), registries=REGISTRIES, user=(1000, 1001), pause_s=0.01)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await may_end.wait()

    fake.hold["DELETE /containers/…"] = hold
    container = await engine.start(await spec_of(engine, "echo", tmp_path))
    container.attached.close()
    await fake.lose()
    for step in (container.remove, container.ended, container.terminate):
        with pytest.raises(EngineError) as failed:
            await step()
        assert failed.value.fault is EngineFault.UNREACHABLE
        assert str(fake.path) in str(failed.value)
    await fake.start()
    await begun.wait()
    later = await engine.start(await spec_of(engine, "echo", tmp_path))
    assert len(fake.containers) == 2
    may_end.set()
    await until(lambda: len(fake.containers) == 1)
    later.attached.close()
    await later.remove()


@pytest.mark.requirement("S1")
async def test_an_engine_says_what_it_is(engine: EngineApi, fake: FakeEngine) -> None:
    kind = "Podman 5.6.0 without root" if fake.podman else "Docker 29.0.1"
    assert await engine.describe() == f"{kind}, {fake.path}"


@pytest.mark.requirement("S1")
async def test_what_is_no_engine_is_told(tmp_path: Path) -> None:
    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")
        writer.close()

    server = await asyncio.start_unix_server(answered, str(tmp_path / "other.sock"))
    missing: list[Callable[[], Path | None]] = [
        lambda: None,
        lambda: tmp_path / "other.sock",
        lambda: tmp_path / "none",
    ]
    for find in missing:
        with pytest.raises(EngineError) as failed:
            await EngineApi(EngineSocket(find), registries=REGISTRIES, user=(1, 1)).describe()
        assert failed.value.fault is EngineFault.UNREACHABLE
    server.close()


@pytest.mark.requirement("S1")
def test_the_configured_socket_is_used_and_none_means_none(tmp_path: Path) -> None:
    assert engine_socket(f"unix://{tmp_path}/engine.sock") == tmp_path / "engine.sock"
    assert engine_socket(f"{tmp_path}/engine.sock") == tmp_path / "engine.sock"
    assert engine_socket("none") is None
    found = engine_socket("auto")
    assert found is None or stat.S_ISSOCK(found.stat().st_mode)
