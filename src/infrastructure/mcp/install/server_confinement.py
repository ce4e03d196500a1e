"""What each started server and each installer may use. Above: transports and the installer. Below:
the sandbox."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.given_secrets import is_process_of_person
from domain.mcp.network import HostAllowlist, ServerNetwork
from domain.mcp.server import McpServer, McpServerKind
from infrastructure.confinement.grants import Grants, is_in, of_runtime, runtime_of
from infrastructure.confinement.own_network import PROXY_PORT
from infrastructure.confinement.sandbox import CannotConfineError, Sandbox
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.plain_indexes import installer_variables, plain_indexes, plain_proxies
from infrastructure.mcp.transports.launch import Confined, Launch

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_OF_NPM = ("npm_config_userconfig", "NPM_CONFIG_USERCONFIG")
_OF_PYTHON = ("PIP_CONFIG_FILE", "UV_CONFIG_FILE")
_OF_INSTALLERS = ("pip_", "uv_", "npm_config_")
_PATH = re.compile(r"/[^\s,;'\"]+")
_MAX_CONFIGURATION = 64 * 1024
_INTERPRETERS = ("node", "python3", "uv")
_NPM = frozenset({"npm", "node"})
_IN_HOME_OF_NPM = (".npmrc",)
_IN_HOME_OF_PYTHON = (".netrc", ".pip", ".config/pip", ".config/uv")
_PROXY = f"http://127.0.0.1:{PROXY_PORT}"
_PROXIED = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _PROXY),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1"),
    "NODE_USE_ENV_PROXY": "1",
}
_SYSTEM_WIDE = tuple(map(Path, ("/etc/npmrc", "/etc/pip.conf", "/etc/uv", "/etc/xdg/pip")))


class ServerConfinement:
    """Rules:
    - A server reads its runtime and its installation, and writes its own files in it and its data
      directory, which is its HOME and has its TMPDIR. Processes of one server share that directory.
    - A process that acts for a person shares nothing that it writes with those of others: it has a
      directory of that person, and only reads its installation.
    - What is opened never follows from what a confined process can change: no link and no first
      line of a script in an installation, or in what the operator opens for writing. A server that
      needs another interpreter than ours or one on PATH has it in its installation.
    - A server with an allowlist of hosts has our proxy as its only network, and the variables that
      name it.
    - A custom server in place also reads what its command names, but nothing private (`Protected`).
    - An installer reads the operator's configuration of npm, or of pip and uv, and files that its
      command names, and writes its target and caches that only its organization uses. One that runs
      code of packages has an empty HOME, no configuration, and the operator's indexes and proxies
      without credentials.

    `runtime` is the directory of our own Python.
    """

    def __init__(
        self, *, sandbox: Sandbox, directories: InstallDirectories, search_path: str, runtime: tuple[Path, ...]
    ) -> None:
        self._sandbox = sandbox
        self._directories = directories
        self._search_path = search_path
        self._runtime = tuple(part for prefix in runtime for part in of_runtime(prefix))
        self._changeable = (directories.root, *sandbox.writable)

    async def of_server(self, server: McpServer, launch: Launch) -> Confined:
        """Raises McpFailure NOT_CONNECTED if this machine cannot confine it."""
        network = server.config.network
        if self._sandbox.ports == () and network is ServerNetwork.ALLOWLIST:
            network = ServerNetwork.NONE
        is_of_person = is_process_of_person(server)
        is_free = self._sandbox.is_off and network is ServerNetwork.FULL
        if is_free and not is_of_person:
            return Confined()
        data = await asyncio.to_thread(self._directories.data, server)
        own = {"HOME": str(data), "TMPDIR": str(data / "tmp")}
        if is_free:
            return Confined(environment=own)
        writable = (data,) if is_of_person else (*launch.own, data)
        readable = await asyncio.to_thread(self._readable, server, launch)
        try:
            options = await self._sandbox.options(Grants(readable=readable, writable=writable), network=network)
        except CannotConfineError as exc:
            detail = f"The server was not started: {exc}. `dragoman doctor` says more."
            raise McpFailure(McpFailureKind.NOT_CONNECTED, detail) from exc
        if network is not ServerNetwork.ALLOWLIST:
            return Confined(options=options, environment=own)
        hosts = HostAllowlist(server.config.network_hosts, ports=self._sandbox.ports)
        return Confined(options=options, environment={**own, **_PROXIED}, hosts=hosts)

    def _readable(self, server: McpServer, launch: Launch) -> tuple[Path, ...]:
        place = () if launch.place is None else (launch.place,)
        readable = (*self._runtimes(launch.command, self._search_path), *place)
        if launch.place is None and server.config.kind is McpServerKind.CUSTOM:
            readable += self._named((launch.command, *launch.args), launch.cwd or Path.cwd(), beside=True)
        return readable

    async def of_installer(
        self, target: Path, environment: Mapping[str, str], command: tuple[str, ...], *, runs_packages: bool
    ) -> Confined:
        """Raises McpInstallFailure FAILED if this machine cannot confine it."""
        if self._sandbox.is_off:
            return Confined()
        cache = await asyncio.to_thread(self._directories.cache, target)
        configured = _configurations(environment, is_npm=Path(command[0]).name in _NPM)
        readable = (
            *self._runtimes(command[0], environment.get("PATH", self._search_path)),
            *self._named(command, target, beside=False),
            *(_certificates(environment) if runs_packages else configured),
            *await asyncio.to_thread(self._local_sources, configured, environment),
        )
        try:
            options = await self._sandbox.options(
                Grants(readable=readable, writable=(target, cache)), changes_modes=True
            )
        except CannotConfineError as exc:
            detail = f"Nothing was installed: {exc}. `dragoman doctor` says more."
            raise McpInstallFailure(McpInstallFailureKind.FAILED, detail) from exc
        own = {"XDG_CACHE_HOME": cache, "UV_CACHE_DIR": cache / "uv", "PIP_CACHE_DIR": cache / "pip"}
        own |= {"npm_config_cache": cache / "npm", "TMPDIR": cache / "tmp"}
        # npm takes its variables in any case.
        spelled = {name: own[name.lower()] for name in environment if name.lower() in own}
        directories = {name: str(path) for name, path in {**own, **spelled}.items()}
        if not runs_packages:
            return Confined(options=options, environment=directories)
        plain = await asyncio.to_thread(plain_indexes, _files_of(configured), environment)
        homes = {"HOME": str(target), "XDG_CONFIG_HOME": str(target / ".config")}  # nothing of other installations
        return Confined(
            options=options,
            environment={**plain, **plain_proxies(environment), **directories, **homes},
            without=installer_variables(environment),
        )

    def _local_sources(self, configured: list[Path], environment: Mapping[str, str]) -> tuple[Path, ...]:
        """Directories of packages on this machine, which the operator's configuration names."""
        texts = [value for name, value in environment.items() if name.lower().startswith(_OF_INSTALLERS)]
        for file in _files_of(configured):
            with suppress(OSError):
                texts.append(file.read_text(encoding="utf-8", errors="replace")[:_MAX_CONFIGURATION])
        # A simple index has its files beside it.
        words = {word.removesuffix("/").removesuffix("/simple") for text in texts for word in _PATH.findall(text)}
        named = self._sandbox.protected.named
        return tuple(path for word in sorted(words) for path in named(word, Path("/"), beside=False))

    def _runtimes(self, command: str, search_path: str) -> tuple[Path, ...]:
        """Those of our Python, of the command, and of interpreters that scripts name
        (`/usr/bin/env node`)."""
        commands, changeable = (command, *_INTERPRETERS), self._changeable
        return (
            *self._runtime,
            *(path for name in commands for path in runtime_of(name, search_path, changeable=changeable)),
        )

    def _named(self, command: tuple[str, ...], cwd: Path, *, beside: bool) -> tuple[Path, ...]:
        texts = [part for argument in command for part in (argument, argument.partition("=")[2]) if part]
        named, changeable = self._sandbox.protected.named, self._changeable
        return tuple(
            path for text in texts if not is_in(cwd / text, changeable) for path in named(text, cwd, beside=beside)
        )


def _files_of(paths: Iterable[Path]) -> list[Path]:
    """The files, and those in the directories."""
    return [file for path in paths for file in (path.iterdir() if path.is_dir() else (path,))]


def _certificates(environment: Mapping[str, str]) -> list[Path]:
    return [Path(environment[name]) for name in _CERTIFICATES if environment.get(name)]


def _configurations(environment: Mapping[str, str], *, is_npm: bool) -> list[Path]:
    """The operator's files for npm, or for pip and uv."""
    home = Path(environment.get("HOME", "/nonexistent"))
    found = [home / name for name in (_IN_HOME_OF_NPM if is_npm else _IN_HOME_OF_PYTHON)]
    found += [Path(environment[name]) for name in (_OF_NPM if is_npm else _OF_PYTHON) if environment.get(name)]
    found += _certificates(environment)
    if not is_npm and environment.get("XDG_CONFIG_HOME"):
        found += [Path(environment["XDG_CONFIG_HOME"]) / name for name in ("pip", "uv")]
    return [*found, *_SYSTEM_WIDE]
