"""Adapter of the `ContainerEngine` port: the HTTP API that Docker and Podman offer on a UNIX
socket. Above: transport and installer of servers of kind `oci`. Below: `engine_socket.py`."""

import asyncio
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path

from domain.json_value import JsonObject
from domain.mcp.images import OciImage
from infrastructure.mcp.containers.container_settings import create_body
from infrastructure.mcp.containers.engine import ContainerEnd, ContainerSpec, EngineError, EngineFault, PulledImage
from infrastructure.mcp.containers.engine_socket import EngineSocket, Refusal
from infrastructure.mcp.containers.registry_guard import RegistryGuard

logger = logging.getLogger(__name__)

_START_TIMEOUT_S = 30.0
_REMOVAL_PAUSE_S = 10.0
_NO_USER = 65_534
_KILLED = 137
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NOT_FOUND = 404
_GONE = frozenset({_NOT_FOUND, 409})
"""Not there, or its removal is in progress; of an image, that something else has it."""
_REGISTRY_FAULTS = (
    (re.compile(r"no such host|dial tcp|i/o timeout|connection refused|TLS handshake|x509"), EngineFault.REGISTRY_UNREACHABLE),
    (re.compile(r"toomanyrequests|rate limit", re.IGNORECASE), EngineFault.REFUSED),
    (re.compile(r"denied|unauthorized|authentication required|forbidden", re.IGNORECASE), EngineFault.REFUSED),
    (re.compile(r"not found|manifest unknown|name unknown|no such image", re.IGNORECASE), EngineFault.NOT_FOUND),
)  # fmt: skip
_NO_CREDENTIALS = {"X-Registry-Auth": "e30="}
"""`{}` in base64. Without the header, Podman sends the credentials that its user has."""
_PULL_DETAILS = {
    EngineFault.REGISTRY_UNREACHABLE: "The registry of the image cannot be reached.",
    EngineFault.REFUSED: "The registry refused access to the image: there is none, it is private, or its limit of requests"
    " is reached.",
    EngineFault.NOT_FOUND: "The registry has no such image.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """What an engine said of itself. In a `rootless` one, root of a container is the user of the
    engine."""

    api: str
    name: str
    rootless: bool


class EngineApi:
    """- Requests name the engine's own version of the API, which it always has.
    - Processes of containers run as `user`, the user and group of this service, so that they can
      write the data directory: as root in an engine without root, where that is the user of the
      engine, and as user 65534 for a service of root, since files of root would be open to root of
      a container.
    - A container that could not be removed is removed later, in the background.
    """

    def __init__(
        self,
        engine: EngineSocket,
        *,
        registries: RegistryGuard,
        user: tuple[int, int],
        chown: Callable[[Path, int, int], None] = os.chown,
        pause_s: float = _REMOVAL_PAUSE_S,
    ) -> None:
        self._socket = engine
        self._registries = registries
        self._user = user
        self._chown = chown
        self._known: _Engine | None = None
        self._pause_s = pause_s
        self._left: set[str] = set()
        self._removing: asyncio.Task[None] | None = None

    async def describe(self) -> str:
        self._known = None
        engine = await self._engine()
        return f"{engine.name}{' without root' if engine.rootless else ''}, {self._socket.path}"

    async def pull(self, image: OciImage, on_progress: Callable[[str], None]) -> PulledImage:
        await self._registries.check(image)
        api = (await self._engine()).api
        wanted = {"fromImage": image.reference} if image.digest else {"fromImage": image.repository, "tag": image.tag}
        before = await self._images(api)
        try:
            async with aclosing(self._socket.lines("POST", f"/{api}/images/create", wanted, _NO_CREDENTIALS)) as lines:
                async for line in lines:
                    if "error" in line:
                        raise _pull_failure(str(line["error"]))
                    on_progress(" ".join(str(line[name]) for name in ("id", "status") if line.get(name)))
            described = await self._socket.json("GET", f"/{api}/images/{image.reference}/json")
        except Refusal as refusal:
            raise _pull_failure(refusal.said) from refusal
        return PulledImage(digest=_digest_of(image, described), was_there=_image_id(described) in before)

    async def start(self, spec: ContainerSpec) -> "EngineContainer":
        engine = await self._engine()
        name = f"dragoman-{secrets.token_hex(8)}"
        attached: socket.socket | None = None
        try:
            image = await self._socket.json("GET", f"/{engine.api}/images/{spec.image}/json")
            body = create_body(spec, user=self._user_in(engine, spec.data), image=image)
            await self._socket.json("POST", f"/{engine.api}/containers/create", {"name": name}, body)
            attached = await self._socket.attach(f"/{engine.api}/containers/{name}/attach")
            await self._socket.json("POST", f"/{engine.api}/containers/{name}/start", timeout_s=_START_TIMEOUT_S)
        except BaseException as exc:
            if attached is not None:
                attached.close()
            with suppress(EngineError):
                await self.remove(engine.api, name)
            if isinstance(exc, Refusal):
                raise _start_failure(exc) from exc
            raise
        return EngineContainer(self, self._socket, engine.api, name, attached)

    async def remove_all(self, label: str, is_meant: Callable[[str], bool]) -> int:
        api = (await self._engine()).api
        asked = {"all": "1", "filters": f'{{"label": ["{label}"]}}'}
        try:
            listed = await self._socket.json("GET", f"/{api}/containers/json", asked)
        except Refusal as refusal:
            raise refusal.as_error() from refusal
        meant = [entry["Id"] for entry in listed if is_meant((entry.get("Labels") or {}).get(label, ""))]
        for container in meant:
            await self.remove(api, container)
        return len(meant)

    async def remove_image(self, image: str) -> bool:
        api = (await self._engine()).api
        try:
            described = await self._socket.json("GET", f"/{api}/images/{image}/json")
            # By its id: the name with the digest alone would leave the one with the tag.
            await self._socket.json("DELETE", f"/{api}/images/{described['Id']}")
        except Refusal as refusal:
            if refusal.status not in _GONE:
                raise refusal.as_error() from refusal
            return refusal.status == _NOT_FOUND
        return True

    async def _images(self, api: str) -> frozenset[str]:
        try:
            return frozenset(map(_image_id, await self._socket.json("GET", f"/{api}/images/json")))
        except Refusal as refusal:
            raise refusal.as_error() from refusal

    async def remove(self, api: str, container: str) -> None:
        """End and remove a container. Raises EngineError, and removes it later."""
        try:
            await self._delete(api, container)
        except BaseException:  # also when cancelled: the engine may not have received it
            self._left.add(container)
            if self._removing is None or self._removing.done():
                self._removing = asyncio.create_task(self._remove_left(api), name="container-removals")
            raise

    async def _delete(self, api: str, container: str) -> None:
        try:
            await self._socket.json("DELETE", f"/{api}/containers/{container}", {"force": "1", "v": "1"})
        except Refusal as refusal:
            if refusal.status not in _GONE:
                raise refusal.as_error() from refusal

    def _user_in(self, engine: _Engine, data: Path) -> str:
        user, group = self._user
        if engine.rootless:
            user = group = 0
        elif user == 0:
            user = group = _NO_USER
            self._chown(data, user, group)
        return f"{user}:{group}"

    async def _remove_left(self, api: str) -> None:
        while self._left:
            await asyncio.sleep(self._pause_s)
            for container in list(self._left):
                with suppress(EngineError):
                    await self._delete(api, container)
                    self._left.discard(container)

    async def _engine(self) -> _Engine:
        if self._known is None:
            self._known = await self._look()
        return self._known

    async def _look(self) -> _Engine:
        headers = await self._socket.ping()
        version = headers.get("Api-Version", "")
        if not re.fullmatch(r"\d+\.\d+", version):
            raise EngineError(EngineFault.UNREACHABLE, f"What answers at {self._socket.path} is no container engine.")
        api = f"v{version}"
        try:
            about: JsonObject = await self._socket.json("GET", f"/{api}/info")
        except Refusal as refusal:
            raise refusal.as_error() from refusal
        kind = "Podman" if "Libpod-API-Version" in headers else "Docker"
        options = about.get("SecurityOptions")
        return _Engine(
            api=api,
            name=f"{kind} {about.get('ServerVersion') or ''}".strip(),
            rootless=isinstance(options, list) and any("name=rootless" in str(option) for option in options),
        )


class EngineContainer:
    """The `Container` port over the engine's API."""

    def __init__(self, engine: EngineApi, asked: EngineSocket, api: str, name: str, attached: socket.socket) -> None:
        self._engine = engine
        self._socket = asked
        self._api = api
        self._name = name
        self.attached = attached

    async def ended(self) -> ContainerEnd:
        path = f"/{self._api}/containers/{self._name}"
        try:
            waited = await self._socket.json("POST", f"{path}/wait", {"condition": "not-running"}, timeout_s=None)
            described = await self._socket.json("GET", f"{path}/json")
            is_over = described["State"].get("OOMKilled") is True
            return ContainerEnd(status=int(waited["StatusCode"]), out_of_memory=is_over)
        except Refusal as refusal:
            if refusal.status not in _GONE:
                raise refusal.as_error() from refusal
            return ContainerEnd(status=_KILLED, out_of_memory=False)  # it was removed, which ends it first
        except (KeyError, TypeError, ValueError) as exc:
            detail = "The container engine does not say how a container has ended."
            raise EngineError(EngineFault.UNREACHABLE, detail) from exc

    async def terminate(self) -> None:
        try:
            await self._socket.json("POST", f"/{self._api}/containers/{self._name}/kill", {"signal": "SIGTERM"})
        except Refusal as refusal:
            if refusal.status not in _GONE:
                raise refusal.as_error() from refusal

    async def remove(self) -> None:
        await self._engine.remove(self._api, self._name)


def _image_id(described: JsonObject) -> str:
    """Podman leaves out the kind of hash in some answers."""
    return str(described.get("Id")).removeprefix("sha256:")


def _digest_of(image: OciImage, described: JsonObject) -> str:
    """The digest by which the registry has the image. Raises EngineError."""
    named = described.get("RepoDigests")
    digests = [str(each).rpartition("@") for each in named] if isinstance(named, list) else []
    own = [digest for name, _, digest in digests if name == image.repository or name.endswith(f"/{image.repository}")]
    found = next((digest for digest in own if image.digest in (None, digest)), None)
    if found is None or not _DIGEST.fullmatch(found):
        raise EngineError(EngineFault.NOT_FOUND, "The engine names no digest for the image that it has pulled.")
    return found


def _pull_failure(said: str) -> EngineError:
    fault = next((fault for pattern, fault in _REGISTRY_FAULTS if pattern.search(said)), EngineFault.REFUSED)
    return EngineError(fault, _PULL_DETAILS[fault], said=said)


def _start_failure(refusal: Refusal) -> EngineError:
    if refusal.status == _NOT_FOUND and "image" in refusal.said.lower():
        detail = "The image is not in the container engine any more: install the server again."
        return EngineError(EngineFault.NOT_FOUND, detail, said=refusal.said)
    return refusal.as_error()
