"""Finds the service for a command: that of the settings, that of HOME, or one opened here."""

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from infrastructure.settings import Settings, unknown_variables
from interfaces.cli.api import IN_PROCESS, ServiceApi
from interfaces.cli.asgi_transport import StreamingAsgiTransport
from interfaces.cli.checked_settings import checked_settings
from interfaces.cli.failures import BadUsage, CommandFailure
from interfaces.cli.loading import loading
from interfaces.cli.service_client import ServiceClient
from interfaces.cli.sign_in.person_auth import PersonAuth
from interfaces.cli.sign_in.provider import ProviderClient
from interfaces.cli.sign_in.stored import StoredSignIns

PROBE_TIMEOUT_S = 30.0
"""A busy service may take long to answer. It is not taken for one that is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningService:
    """The content of HOME/serve.json about the service that owns HOME."""

    url: str
    pid: int


def _unsaid(_remark: str) -> None:
    """The default for remarks."""


@asynccontextmanager
async def connected(
    *, worker: bool, creates: bool = False, remark: Callable[[str], None] = _unsaid
) -> AsyncIterator[ServiceApi]:
    """The service, by the settings of this process:
    - DRAGOMAN_URL with DRAGOMAN_API_KEY or the person's sign-in; else
    - the service that owns HOME, with DRAGOMAN_API_KEY, the person's sign-in, or its
      HOME/admin.key; else
    - HOME opened in this process, under its lock, during the command; with `worker` it executes
      runs. Without data in HOME this requires `creates`.
    Raises BadUsage, CommandFailure.
    """
    settings = checked_settings()
    for warning in unknown_variables():
        remark(f"Warning: {warning}")
    running = await _running(settings)
    if running is not None:
        async with aclosing(running) as client:
            yield client
        return
    if settings.postgres_url is None and not (settings.database_path or settings.home / "dragoman.db").exists():
        if not creates:
            raise CommandFailure(
                f"There is no service here: none runs on {settings.home}, and there is no data in it. Start one with "
                "`dragoman serve` or `dragoman init`, or set DRAGOMAN_HOME or DRAGOMAN_URL to where it is."
            )
        remark(f"There is no service here. Creating the data directory {settings.home}.")
    async with _opened_here(settings, _key_of(settings), worker=worker) as client:
        yield client


@asynccontextmanager
async def connected_to_running() -> AsyncIterator[ServiceApi]:
    """The running service, as in `connected`. Raises BadUsage, CommandFailure if there is none."""
    running = await _running(checked_settings())
    if running is None:
        raise CommandFailure("No service is running.")
    async with aclosing(running) as client:
        yield client


async def _running(settings: Settings) -> ServiceClient | None:
    """A client of the service of the settings, or of the one that owns HOME. Its user closes it."""
    address = await service_address(settings)
    if address is None:
        return None
    through_proxies = settings.url is not None
    api_key = _key_of(settings)
    stored = stored_sign_ins(settings)
    if api_key is None and (sign_in := stored.of(address)) is not None:
        auth = PersonAuth(sign_in, stored=stored, provider=ProviderClient())
        return ServiceClient(address=address, auth=auth, through_proxies=through_proxies)
    if api_key is None and settings.url is not None:
        raise BadUsage(
            f"DRAGOMAN_URL is set to {settings.url}; sign in there with `dragoman login`, or set DRAGOMAN_API_KEY to a "
            "key of that service."
        )
    key = api_key or admin_key(settings.home)
    return ServiceClient(address=address, api_key=key, through_proxies=through_proxies)


async def service_address(settings: Settings) -> str | None:
    """The address of the service of the settings, or of the one that owns HOME."""
    if settings.url is not None:
        return settings.url
    running = await running_service(settings.home)
    return None if running is None else running.url


def stored_sign_ins(settings: Settings) -> StoredSignIns:
    """What people signed in to with the command line."""
    return StoredSignIns(settings.config_dir.expanduser())


def _key_of(settings: Settings) -> str | None:
    return None if settings.api_key is None else settings.api_key.get_secret_value()


async def running_service(home: Path) -> RunningService | None:
    """The live service that owns HOME; the file of a killed one is ignored."""
    announced = announced_service(home)
    if announced is None or not _is_alive(announced.pid):
        return None
    secure = announced.url.startswith("https:")
    async with httpx.AsyncClient(trust_env=False, timeout=PROBE_TIMEOUT_S, verify=secure) as probe:
        try:
            response = await probe.get(f"{announced.url}/health/live")
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
    return announced if response.is_success else None


def announced_service(home: Path) -> RunningService | None:
    """The content of HOME/serve.json, current or not."""
    try:
        document = json.loads((home / "serve.json").read_text(encoding="utf-8"))
        return RunningService(url=str(document["url"]).rstrip("/"), pid=int(document["pid"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def admin_key(home: Path) -> str:
    """The key of the first start. Raises CommandFailure if it cannot be read."""
    path = home / "admin.key"
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as exc:
        raise CommandFailure(
            f"The service that owns {home} is running, but its key {path} cannot be read ({exc.strerror}); "
            "set DRAGOMAN_API_KEY."
        ) from exc


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@asynccontextmanager
async def _opened_here(settings: Settings, api_key: str | None, *, worker: bool) -> AsyncIterator[ServiceApi]:
    # The complete service: loaded only if none is running.
    with loading():
        from interfaces.service import embedded

    async with embedded(settings, api_key=api_key, worker=worker) as service:
        transport = StreamingAsgiTransport(service.app)
        client = ServiceClient(address=IN_PROCESS, api_key=service.api_key, transport=transport, through_proxies=False)
        async with aclosing(client):
            yield client
