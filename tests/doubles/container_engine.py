"""A container engine on a UNIX socket, as strict as Docker's and Podman's own about what it is
asked. Its containers are processes of this machine: nothing confines them, and what they may use is
to be read in `containers`."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.doubles.engine_containers import FakeContainer, FakeImage, end_with, fed, framed
from tests.doubles.engine_http import Asked, Refused, answer, answer_lines, read_request

_FIELDS = frozenset(
    [
        "Image",
        "Env",
        "User",
        "AttachStdin",
        "AttachStdout",
        "AttachStderr",
        "OpenStdin",
        "StdinOnce",
        "Tty",
        "Healthcheck",
        "Labels",
        "HostConfig",
        "Cmd",
    ]
)
_HOST_FIELDS = frozenset(
    [
        "NetworkMode",
        "ReadonlyRootfs",
        "Privileged",
        "CapDrop",
        "SecurityOpt",
        "IpcMode",
        "Memory",
        "MemorySwap",
        "PidsLimit",
        "NanoCpus",
        "Ulimits",
        "Mounts",
        "Tmpfs",
        "LogConfig",
        "RestartPolicy",
        "AutoRemove",
    ]
)
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
_SIGNALS = 128


class FakeEngine:
    """- `registry` has images by `repository:tag`; `local` those that were pulled, by reference.
    - `asked` are the requests so far (`POST /containers/create`).
    - `podman`: headers and names of digests as Podman has them. `rootless`: as an engine of a user
      says it.
    - `credentials` are those sent with each pull.
    - `hold` is awaited by the request that it names, before its answer.
    """

    API, OLDEST = (1, 51), (1, 44)

    def __init__(self, path: Path, *, podman: bool = False, rootless: bool = False) -> None:
        self.path = path
        self.podman = podman
        self.rootless = rootless
        self.registry: dict[str, FakeImage] = {}
        self.local: dict[str, FakeImage] = {}
        self.containers: dict[str, FakeContainer] = {}
        self.removed: list[FakeContainer] = []
        self.asked: list[str] = []
        self.credentials: list[str | None] = []
        self.refuses: dict[str, tuple[int, str]] = {}
        self.hold: dict[str, Callable[[], Awaitable[None]]] = {}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, str(self.path))

    async def lose(self) -> None:
        """Be gone, with all connections; containers go on."""
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.transport.abort()
        self.path.unlink(missing_ok=True)

    async def stop(self) -> None:
        """Be gone, with all containers."""
        await self.lose()
        for container in self.containers.values():
            end_with(container, signal.SIGKILL)
        while self._tasks:
            await asyncio.wait(self._tasks)

    def running(self) -> list[FakeContainer]:
        return [container for container in self.containers.values() if container.state == "running"]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        taken = False
        try:
            asked = await read_request(reader)
            try:
                taken = await self._answered(asked, reader, writer)
            except Refused as refused:
                answer(writer, refused.status, {"message": refused.message})
            if not taken:
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            if not taken:
                self._open.discard(writer)
                writer.close()
            self._tasks.discard(task)

    async def _answered(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection was taken over."""
        path = self._route(asked)
        found = re.fullmatch(r"/containers/([^/]+)(/[a-z]+)?", path)
        shown = f"{asked.method} {path}" if found is None else f"{asked.method} /containers/…{found[2] or ''}"
        if path in ("/containers/create", "/containers/json"):
            found, shown = None, f"{asked.method} {path}"
        self.asked.append(shown)
        if (hold := self.hold.get(shown)) is not None:
            await hold()
        if (refusal := self.refuses.get(shown)) is not None:
            raise Refused(*refusal)
        if found is not None:
            return await self._of_container(asked, self._container(found[1]), found[2] or "", reader, writer)
        match asked.method, path:
            case "GET", "/_ping":
                answer(writer, 200, "OK", self._headers())
            case "GET", "/info":
                options = ["name=seccomp,profile=builtin", *(["name=rootless"] if self.rootless else [])]
                answer(writer, 200, {"ServerVersion": "5.6.0" if self.podman else "29.0.1", "SecurityOptions": options})
            case "POST", "/images/create":
                await self._pull(asked, writer)
            case "GET", _ if path.startswith("/images/") and path.endswith("/json"):
                answer(writer, 200, self._inspected(path.removeprefix("/images/").removesuffix("/json")))
            case "DELETE", _ if path.startswith("/images/"):
                answer(writer, 200, [{"Deleted": self._remove_image(path.removeprefix("/images/"))}])
            case "POST", "/containers/create":
                answer(writer, 201, {"Id": self._create(asked).id, "Warnings": []})
            case "GET", "/containers/json":
                answer(writer, 200, self._listed(asked))
            case _:
                raise Refused(404, "page not found")
        return False

    def _route(self, asked: Asked) -> str:
        if asked.path == "/_ping":
            return asked.path
        found = re.fullmatch(r"/v(\d+)\.(\d+)(/.*)", asked.path)
        if found is None:
            raise Refused(404, "page not found")
        version = (int(found[1]), int(found[2]))
        if not self.OLDEST <= version <= self.API:
            raise Refused(400, f"client version {version} is too {'new' if version > self.API else 'old'}")
        return found[3]

    def _headers(self) -> dict[str, str]:
        version = {"Api-Version": "{}.{}".format(*self.API)}
        return version | ({"Libpod-Api-Version": "5.6.0"} if self.podman else {})

    async def _pull(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.credentials.append(asked.headers.get("x-registry-auth"))
        image = asked.params["fromImage"]
        if "@" in image:
            repository, _, digest = image.partition("@")
            named = {f"{name.rpartition(':')[0]}@{each.digest}": each for name, each in self.registry.items()}
            found, reference = named.get(f"{repository}@{digest}"), image
        else:
            repository, reference = image, f"{image}:{asked.params['tag']}"
            found = self.registry.get(reference)
        if not any(name.rpartition(":")[0] == repository for name in self.registry):
            said = f"pull access denied for {repository}, repository does not exist or may require 'docker login'"
            raise Refused(404, said)
        if found is None:
            said = f"manifest for {reference} not found: manifest unknown"
            await answer_lines(writer, [{"status": f"Pulling from {repository}"}, {"error": said}])
            return
        self.local |= {reference: found, f"{repository}@{found.digest}": found}
        await answer_lines(
            writer,
            [
                {"status": f"Pulling from {repository}", "id": "latest"},
                {"status": "Downloading", "progressDetail": {"current": 1, "total": 2}, "id": "5e1b2c"},
                {"status": f"Digest: {found.digest}"},
            ],
        )

    def _inspected(self, reference: str) -> dict[str, Any] | list[dict[str, Any]]:
        if reference == "json":  # all images
            ids = {image.id for image in self.local.values()}
            return [{"Id": each.removeprefix("sha256:") if self.podman else each} for each in ids]
        image = self.local.get(reference)
        if image is None:
            raise Refused(404, f"No such image: {reference}")
        repository = reference.partition("@")[0] if "@" in reference else reference.rpartition(":")[0]
        shown = f"docker.io/{repository}" if self.podman and "." not in repository.partition("/")[0] else repository
        digests = [f"another/name@sha256:{'9' * 64}", f"{shown}@{image.digest}"]
        config: dict[str, Any] = {"Volumes": {path: {} for path in image.volumes} or None}
        return {"Id": image.id, "RepoTags": [reference], "RepoDigests": digests, "Config": config}

    def _remove_image(self, image_id: str) -> str:
        names = [name for name, image in self.local.items() if image.id == image_id]
        if not names:
            raise Refused(404, f"No such image: {image_id}")
        if len({name.partition("@")[0] if "@" in name else name.rpartition(":")[0] for name in names}) > 1:
            raise Refused(409, f"unable to delete {image_id} (must be forced) - image is in multiple repositories")
        if any(container.body["Image"] in names for container in self.containers.values()):
            raise Refused(409, f"unable to delete {image_id} (cannot be forced) - image is used by a container")
        for name in names:
            del self.local[name]
        return image_id

    def _create(self, asked: Asked) -> FakeContainer:
        body, name = asked.json(), asked.params["name"]
        host = body["HostConfig"]
        if unknown := {*body} - _FIELDS | {*host} - _HOST_FIELDS:
            raise Refused(400, f"unknown fields: {sorted(unknown)}")
        if not _NAME.fullmatch(name) or any(name == each.name for each in self.containers.values()):
            raise Refused(409, f"the name {name} is in use or not valid")
        image = self.local.get(body["Image"])
        if image is None:
            raise Refused(404, f"No such image: {body['Image']}")
        for mount in host["Mounts"]:
            if mount["Type"] != "tmpfs" and (mount["Type"] != "bind" or not Path(mount["Source"]).is_dir()):
                raise Refused(400, f"invalid mount config: bind source path does not exist: {mount['Source']}")
        if not all(isinstance(each, str) for each in (*body["Env"], *body.get("Cmd", ()))):
            raise Refused(400, "json: cannot unmarshal")
        container = FakeContainer(
            id=os.urandom(32).hex(), name=name, body=body, command=(*image.command, *body.get("Cmd", ()))
        )
        self.containers[container.id] = container
        return container

    def _listed(self, asked: Asked) -> list[dict[str, Any]]:
        filters = json.loads(asked.params.get("filters", "{}"))
        if not all(isinstance(values, list) for values in filters.values()):
            raise Refused(400, "invalid filter")
        shown = self.containers.values() if asked.params.get("all") in ("1", "true") else self.running()
        return [
            {"Id": each.id, "Names": [f"/{each.name}"], "Labels": each.body["Labels"], "State": each.state}
            for each in shown
            if all(label in each.body["Labels"] for label in filters.get("label", ()))
        ]

    def _container(self, id_or_name: str) -> FakeContainer:
        found = [each for each in self.containers.values() if id_or_name in (each.id, each.name)]
        if not found:
            raise Refused(404, f"No such container: {id_or_name}")
        return found[0]

    async def _of_container(
        self,
        asked: Asked,
        container: FakeContainer,
        action: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        match asked.method, action:
            case "POST", "/attach":
                self._attach(asked, container, reader, writer)
                return True
            case "POST", "/start":
                await self._start(container, writer)
            case "POST", "/wait":
                if asked.params.get("condition") not in ("not-running", "next-exit", "removed"):
                    raise Refused(400, "invalid condition")
                if container.state == "running":
                    await container.ended.wait()
                answer(writer, 200, {"StatusCode": container.status, "Error": None})
            case "POST", "/kill":
                if container.state != "running":
                    raise Refused(409, f"container {container.id} is not running")
                end_with(container, signal.Signals[asked.params["signal"]])
                answer(writer, 204, None)
            case "GET", "/json":
                state = {"Running": container.state == "running", "ExitCode": container.status}
                answer(writer, 200, {"Id": container.id, "State": state | {"OOMKilled": container.out_of_memory}})
            case "DELETE", "":
                await self._remove(asked, container)
                answer(writer, 204, None)
            case _:
                raise Refused(404, "page not found")
        return False

    def _attach(
        self, asked: Asked, container: FakeContainer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if asked.headers.get("upgrade") != "tcp" or asked.headers.get("connection", "").lower() != "upgrade":
            raise Refused(400, "this double upgrades connections only")
        if not all(asked.params.get(name) in ("1", "true") for name in ("stream", "stdin", "stdout", "stderr")):
            raise Refused(400, "nothing to attach")
        writer.write(
            b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\n"
            b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
        container.attached = (reader, writer)

    async def _start(self, container: FakeContainer, writer: asyncio.StreamWriter) -> None:
        if container.state != "created":
            answer(writer, 304, None)
            return
        pairs = (str(entry).partition("=") for entry in container.body["Env"])
        mounts = {mount["Target"]: mount["Source"] for mount in container.host["Mounts"] if mount["Type"] == "bind"}
        inside: dict[str, str] = {name: mounts.get(value, value) for name, _, value in pairs}
        try:
            container.process = await asyncio.create_subprocess_exec(
                *container.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=inside,
                start_new_session=True,
            )
        except OSError as exc:
            said = f'exec: "{container.command[0]}": executable file not found in $PATH'
            raise Refused(400, f"failed to create task for container: {said}") from exc
        container.state = "running"
        task = asyncio.create_task(self._run(container))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        answer(writer, 204, None)

    async def _run(self, container: FakeContainer) -> None:
        process = container.process
        assert process is not None
        relays: list[asyncio.Task[None]] = []
        if container.attached is not None:
            reader, writer = container.attached
            assert process.stdin is not None
            relays = [asyncio.create_task(fed(reader, process.stdin))]
            assert process.stdout is not None
            assert process.stderr is not None
            outputs = [framed(1, process.stdout, writer), framed(2, process.stderr, writer)]
            await asyncio.gather(*outputs)
        status = await process.wait()
        container.status = status if status >= 0 else _SIGNALS - status
        container.state = "exited"
        container.ended.set()
        for relay in relays:
            relay.cancel()
            with suppress(asyncio.CancelledError):
                await relay
        if container.attached is not None:
            self._open.discard(container.attached[1])
            container.attached[1].close()

    async def _remove(self, asked: Asked, container: FakeContainer) -> None:
        if container.state == "running":
            if asked.params.get("force") not in ("1", "true"):
                raise Refused(409, f"cannot remove container {container.id}: container is running")
            end_with(container, signal.SIGKILL)
            await container.ended.wait()
        if container.attached is not None:
            container.attached[1].close()
        self.removed.append(self.containers.pop(container.id))
