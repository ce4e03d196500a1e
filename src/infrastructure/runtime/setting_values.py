"""Validators of setting values from the environment. Each raises ValueError for an invalid one."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, SecretStr

from domain.errors import ServiceError
from domain.rate_limit import RateLimit
from infrastructure.http.egress import EgressPolicy
from infrastructure.mcp.transports.process_limits import parse_process_limits
from infrastructure.siem.syslog_address import SyslogAddress

MIN_SECRET_KEY = 16
SQLITE_FILE = re.compile(r"sqlite:///(?P<path>(?!:memory:)[^?#]+)")
POSTGRES_URL = re.compile(r"postgres(ql)?(\+\w+)?://.")
_SYSLOG: dict[str, Literal["tcp", "tls", "udp"]] = {f"syslog+{each}": each for each in ("tcp", "tls", "udp")}
_PATH_SEGMENT = re.compile(r"(?:[A-Za-z0-9_]|\{organization\})(?:[A-Za-z0-9_.-]|\{organization\})*")
_MAX_RATE_CALLS = 1_000_000
_MAX_RATE_S = 86_400
_MAX_PORT = 65_535
_REGISTRY_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def lower(value: object) -> object:
    """The value in lower case, if it is a text."""
    return value.lower() if isinstance(value, str) else value


def http_url(value: str) -> str:
    """An http or https URL, without a trailing slash. Raises ValueError."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError("not an http or https URL")
    return value.rstrip("/")


def issuer(value: str) -> str:
    """The URL of an issuer as it is: issuers are compared as texts. Raises ValueError."""
    http_url(value)
    return value


def proxy_url(value: str) -> str:
    """The http URL of a proxy; `http://` is added if no scheme is given. Raises ValueError."""
    url = value if "://" in value else f"http://{value}"
    if urlsplit(url).scheme != "http":
        raise ValueError("not an http URL")
    return http_url(url)


def database_url(value: str) -> str:
    """The URL of an SQLite file or of a PostgreSQL database. Raises ValueError."""
    if not POSTGRES_URL.match(value) and not SQLITE_FILE.fullmatch(value):
        raise ValueError("not a database URL")
    return value


def process_limits(value: str) -> str:
    parse_process_limits(value)
    return value


def paths(value: str) -> str:
    if not all(entry.startswith("/") for entry in entries(value)):
        raise ValueError("not absolute")
    return value


def engine(value: str) -> str:
    """`auto`, `none`, or a socket as a path or `unix://` URL. Raises ValueError."""
    if value.lower() in {"auto", "none"}:
        return value.lower()
    if not value.removeprefix("unix://").startswith("/"):
        raise ValueError("not a socket")
    return value


def ports(value: str) -> str:
    parse_ports(value)
    return value


def parse_ports(value: str) -> tuple[int, ...] | None:
    """Ports; None for `all`, empty for `none`. Raises ValueError."""
    if value.lower() in {"all", "none"}:
        return None if value.lower() == "all" else ()
    numbers = tuple(map(int, entries(value)))
    if not numbers or not all(0 < number <= _MAX_PORT for number in numbers):
        raise ValueError("not ports")
    return numbers


def siem_url(value: str) -> str:
    """The URL of a receiver of audit entries. Raises ValueError."""
    if urlsplit(value).username is not None or urlsplit(value).password is not None:
        raise ValueError("has credentials")
    return value if syslog_address(value) is not None else http_url(value)


def syslog_address(url: str) -> SyslogAddress | None:
    """The address in a `syslog+…` URL; None for a URL of another scheme. Raises ValueError."""
    parts = urlsplit(url)
    transport = _SYSLOG.get(parts.scheme)
    if transport is None:
        return None
    if not parts.hostname or not parts.port or parts.path.strip("/") or parts.query:
        raise ValueError("not host and port")
    return SyslogAddress(transport=transport, host=parts.hostname, port=parts.port)


def organization_path(value: str) -> str:
    """A path of Vault with the place of the organization's id. Raises ValueError."""
    segments = value.strip("/").split("/")
    if "{organization}" not in value or not all(map(_PATH_SEGMENT.fullmatch, segments)):
        raise ValueError("not a path with {organization}")
    return value.strip("/")


def absolute(value: Path) -> Path:
    return value.expanduser().absolute()


def certificates(value: Path) -> Path:
    """The absolute path of a readable file of certificates in PEM. Raises ValueError."""
    path = absolute(value)
    try:
        is_pem = b"-----BEGIN CERTIFICATE-----" in path.read_bytes()
    except OSError as error:
        raise ValueError("not readable") from error
    if not is_pem:
        raise ValueError("no certificates")
    return path


def secret_keys(value: SecretStr) -> SecretStr:
    if any(len(key) < MIN_SECRET_KEY for key in separate(value)):
        raise ValueError("too short")
    return value


def egress_allow(value: str) -> str:
    EgressPolicy(entries(value))
    return value


def networks(value: str) -> str:
    parse_networks(value)
    return value


def parse_networks(value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Networks; an address is a network of one. Raises ValueError."""
    return tuple(map(ip_network, entries(value)))


def otel_headers(value: SecretStr) -> SecretStr:
    parse_otel_headers(value.get_secret_value())
    return value


def parse_otel_headers(value: str) -> dict[str, str]:
    """`name=value,…` with URL-encoded values (OpenTelemetry, OTLP exporter configuration). Raises
    ValueError."""
    headers: dict[str, str] = {}
    for entry in entries(value):
        name, equals, text = entry.partition("=")
        text = unquote(text.strip())
        if not equals or not _HEADER_NAME.fullmatch(name.strip()) or not text.isprintable():
            raise ValueError("not NAME=VALUE")
        headers[name.strip().lower()] = text
    return headers


def registries(value: str) -> str:
    parse_registries(value)
    return value


def parse_registries(value: str) -> dict[str, str]:
    """`name=address,…`: addresses of MCP registries, before `/v0.1`. Raises ValueError."""
    found: dict[str, str] = {}
    for entry in entries(value):
        name, _, url = entry.partition("=")
        if not _REGISTRY_NAME.fullmatch(name) or name in found or "?" in url:
            raise ValueError("not NAME=URL")
        found[name] = http_url(url)
    return found


def rate(value: str) -> str:
    parse_rate(value)
    return value


def parse_rate(value: str) -> RateLimit:
    """`600/60`: calls per seconds. Raises ValueError."""
    calls, slash, per_s = value.partition("/")
    if not slash or not calls.isdecimal() or not calls.isascii():
        raise ValueError("not CALLS/SECONDS")
    try:
        limit = RateLimit(calls=int(calls), per_s=float(per_s))
    except ServiceError:
        raise ValueError("not greater than 0") from None
    if limit.calls > _MAX_RATE_CALLS or not limit.per_s <= _MAX_RATE_S:
        raise ValueError("too large")
    return limit


def entries(value: str) -> tuple[str, ...]:
    """The entries between commas."""
    return tuple(entry for part in value.split(",") if (entry := part.strip()))


def separate(value: SecretStr) -> list[str]:
    return [key.strip() for key in value.get_secret_value().split(",")]


HttpUrl = Annotated[str, AfterValidator(http_url)]
