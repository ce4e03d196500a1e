"""The service's settings, read from the environment and checked at start. Nothing else reads the
environment."""

import difflib
import os
from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from domain.rate_limit import RateLimit
from infrastructure.otel_settings import OtelSettings
from infrastructure.process_settings import ProcessSettings
from infrastructure.provider_settings import ProviderSettings
from infrastructure.runtime import process_environment
from infrastructure.runtime import setting_values as values
from infrastructure.secret_settings import SecretSettings
from infrastructure.siem_settings import SiemSettings

PREFIX = "DRAGOMAN_"

_TEST_PREFIX = f"{PREFIX}TEST_"
_LANGFUSE_CLOUD = "https://cloud.langfuse.com"
_MIN_TOKEN = 12


class SettingsError(Exception):
    """Invalid settings. The message has one line per setting, for the operator, and shows no
    secret."""


class Settings(OtelSettings, ProcessSettings, ProviderSettings, SecretSettings, SiemSettings):
    """Every setting with its default. Descriptions complete "must be …" of an error message."""

    home: Annotated[Path, AfterValidator(values.absolute)] = Field(
        default=Path(".dragoman"), validate_default=True, description="a directory", examples=["/var/lib/dragoman"]
    )
    database_url: Annotated[str, AfterValidator(values.database_url)] | None = Field(
        default=None,
        repr=False,
        description="the URL of an SQLite file (sqlite:/// and its path, four slashes in all for an absolute one) or of a"
        " PostgreSQL database",
        examples=["postgresql://dragoman@db.internal/dragoman"],
    )
    archive_dir: Annotated[Path, AfterValidator(values.absolute)] | None = Field(
        default=None,
        description="a directory, to which audit entries, runs and gateway calls are written before retention removes them",
        examples=["/var/lib/dragoman-archive"],
    )
    database_wait_s: float = Field(default=60.0, ge=0, le=3_600, description="0 to 3600 seconds", examples=["300"])
    host: str = Field(
        default="127.0.0.1",
        pattern=r"^[A-Za-z0-9.:_-]+$",
        description="an address or host name",
        examples=["0.0.0.0"],  # noqa: S104  # an example, for those who want it
    )
    port: int = Field(default=8321, ge=0, le=65535, description="a port from 0 to 65535", examples=["8321"])
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="a port from 0 to 65535, where `dragoman worker` answers /metrics and /health",
        examples=["9321"],
    )
    metrics_token: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="a text of at least 16 characters, which /metrics then requires as a bearer token",
        examples=["a-long-random-text"],
    )
    secret_key: Annotated[SecretStr, AfterValidator(values.secret_keys)] | None = Field(
        default=None,
        description=f"a text of at least {values.MIN_SECRET_KEY} characters; several, newest first, separated by commas",
        examples=["the-new-long-passphrase,the-old-long-passphrase"],
    )
    max_connections: int = Field(
        default=4_096, ge=1, le=1_000_000, description="a number from 1 to 1000000", examples=["20000"]
    )
    max_connections_per_address: int = Field(
        default=1_024, ge=1, le=1_000_000, description="a number from 1 to 1000000", examples=["100"]
    )
    shared_addresses: Annotated[str, AfterValidator(values.networks)] = Field(
        default="127.0.0.0/8,::1",
        description="networks and addresses that many clients share, such as a proxy's, separated by commas",
        examples=["127.0.0.0/8,::1,10.0.3.7"],
    )
    request_timeout_s: float = Field(default=30.0, ge=1, le=3_600, description="1 to 3600 seconds", examples=["10"])
    worker_concurrency: int = Field(default=64, ge=1, le=1000, description="a number from 1 to 1000", examples=["64"])
    mcp_enabled: bool = Field(default=True, description="true or false", examples=["true"])
    tool_search_threshold: int = Field(default=60, ge=0, le=10_000, description="0 to 10000", examples=["60"])
    gateway_tool_search_threshold: int | None = Field(
        default=None, ge=0, le=10_000, description="0 to 10000", examples=["40"]
    )
    gateway_authorization_server: Annotated[str, AfterValidator(values.issuer)] | None = Field(
        default=None, description="the issuer of an identity provider", examples=["https://login.example.com"]
    )
    a2a_signing_key: Path | None = Field(
        default=None, description="a PEM file with the key that signs agent cards", examples=["/run/secrets/a2a.pem"]
    )
    a2a_trusted_keys: Path | None = Field(
        default=None, description="a file of JSON Web Keys that sign remote agents' cards", examples=["/etc/a2a.json"]
    )
    registry_organization: str | None = Field(
        default=None, pattern="^org_[0-9A-Za-z]{26}$", description="the id of an organization", examples=["org_01HX4B…"]
    )
    mcp_registries: Annotated[str, AfterValidator(values.registries)] = Field(
        default="",
        description="names and addresses (before /v0.1) of MCP registries that servers are added from, separated by commas",
        examples=["ours=https://agents.example.com"],
    )
    workflow_tool_ttl_s: int = Field(
        default=604_800, ge=60, le=31_536_000, description="60 to 31536000 seconds", examples=["604800"]
    )
    egress_allow: Annotated[str, AfterValidator(values.egress_allow)] = Field(
        default="",
        description="networks, addresses and host names separated by commas",
        examples=["10.1.0.0/16,mcp.internal"],
    )
    http_proxy: Annotated[str, AfterValidator(values.proxy_url)] | None = Field(
        default=None,
        validation_alias="HTTP_PROXY",
        repr=False,
        description="the http URL of a proxy, for requests to http URLs",
        examples=["http://proxy.internal:3128"],
    )
    https_proxy: Annotated[str, AfterValidator(values.proxy_url)] | None = Field(
        default=None,
        validation_alias="HTTPS_PROXY",
        repr=False,
        description="the http URL of a proxy, for requests to https URLs",
        examples=["http://proxy.internal:3128"],
    )
    no_proxy: str = Field(
        default="",
        validation_alias="NO_PROXY",
        description="host names, addresses and networks separated by commas",
        examples=["10.0.0.0/8,.internal"],
    )
    key_rate_limit: Annotated[str, AfterValidator(values.rate)] | None = Field(
        default=None, description="REQUESTS/SECONDS for each API key: up to 1000000/86400", examples=["600/60"]
    )
    mcp_max_calls: int = Field(default=256, ge=1, le=100_000, description="1 to 100000 at a time", examples=["256"])
    mcp_rate_limit: Annotated[str, AfterValidator(values.rate)] | None = Field(
        default=None,
        description="CALLS/SECONDS for all MCP servers of an organization together: up to 1000000/86400",
        examples=["6000/60"],
    )
    mcp_max_processes: int = Field(
        default=100,
        ge=1,
        le=100_000,
        description="a number from 1 to 100000: concurrently started MCP servers of one organization",
        examples=["100"],
    )
    public_url: values.HttpUrl | None = Field(
        default=None, description="an http or https URL", examples=["https://agents.example.com"]
    )
    sqlite_synchronous: Annotated[Literal["normal", "full"], BeforeValidator(values.lower)] = Field(
        default="normal", description="normal or full", examples=["full"]
    )
    trace_content: Annotated[Literal["on", "off"], BeforeValidator(values.lower)] = Field(
        default="on", description="on or off", examples=["off"]
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(values.lower)] = Field(
        default="info", description="debug, info, warning or error", examples=["info"]
    )
    log_format: Annotated[Literal["console", "json"], BeforeValidator(values.lower)] = Field(
        default="console", description="console or json", examples=["json"]
    )
    log_slow_ms: int = Field(
        default=1_000,
        ge=1,
        le=3_600_000,
        description="a number of milliseconds from 1 to 3600000",
        examples=["1000"],
    )
    search_provider: Annotated[Literal["duckduckgo", "brave", "tavily"], BeforeValidator(values.lower)] = Field(
        default="duckduckgo", description="duckduckgo, brave or tavily", examples=["brave"]
    )
    brave_api_key: SecretStr | None = Field(default=None, description="a Brave Search API key", examples=["BSA…"])
    brave_base_url: values.HttpUrl = Field(
        default="https://api.search.brave.com",
        description="an http or https URL",
        examples=["https://api.search.brave.com"],
    )
    tavily_api_key: SecretStr | None = Field(default=None, description="a Tavily API key", examples=["tvly-…"])
    tavily_base_url: values.HttpUrl = Field(
        default="https://api.tavily.com", description="an http or https URL", examples=["https://api.tavily.com"]
    )
    duckduckgo_base_url: values.HttpUrl = Field(
        default="https://html.duckduckgo.com",
        description="an http or https URL",
        examples=["https://html.duckduckgo.com"],
    )
    url: values.HttpUrl | None = Field(
        default=None, description="the http or https URL of a running service", examples=["http://127.0.0.1:8321"]
    )
    api_key: SecretStr | None = Field(default=None, description="an API key", examples=["dgm_…"])
    config_dir: Path = Field(
        default=Path("~/.config/dragoman"),
        description="a directory, where the command line stores sign-ins",
        examples=["/home/ann/.dragoman"],
    )

    langfuse_public_key: str | None = Field(
        default=None,
        validation_alias="LANGFUSE_PUBLIC_KEY",
        examples=["pk-lf-…"],
    )
    langfuse_secret_key: SecretStr | None = Field(
        default=None,
        validation_alias="LANGFUSE_SECRET_KEY",
        examples=["sk-lf-…"],
    )
    langfuse_host: values.HttpUrl | None = Field(
        default=None,
        validation_alias="LANGFUSE_HOST",
        description="an http or https URL",
        examples=["https://langfuse.example.com"],
    )
    langfuse_base_url: values.HttpUrl | None = Field(
        default=None,
        validation_alias="LANGFUSE_BASE_URL",
        description="an http or https URL",
        examples=["https://langfuse.example.com"],
    )

    @property
    def database_path(self) -> Path | None:
        """The SQLite file in DATABASE_URL; None for the default file in HOME."""
        named = None if self.database_url is None else values.SQLITE_FILE.fullmatch(self.database_url)
        return None if named is None else values.absolute(Path(named["path"]))

    @property
    def postgres_url(self) -> str | None:
        """The PostgreSQL database that DATABASE_URL names; None with SQLite."""
        return self.database_url if self.database_path is None else None

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """The keys of SECRET_KEY, the encrypting one first; empty when the key is in HOME."""
        return () if self.secret_key is None else tuple(values.separate(self.secret_key))

    @property
    def rate_limit_of_mcp_calls(self) -> RateLimit | None:
        """The rate of calls to the MCP servers of each organization, if limited."""
        return None if self.mcp_rate_limit is None else values.parse_rate(self.mcp_rate_limit)

    @property
    def rate_limit_of_keys(self) -> RateLimit | None:
        """The rate of requests of each API key, if limited."""
        return None if self.key_rate_limit is None else values.parse_rate(self.key_rate_limit)

    @property
    def networks_of_shared_addresses(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return values.parse_networks(self.shared_addresses)

    @property
    def egress_allowed(self) -> tuple[str, ...]:
        return values.entries(self.egress_allow)

    @property
    def registry_urls(self) -> Mapping[str, str]:
        """The addresses of MCP registries by their names."""
        return values.parse_registries(self.mcp_registries)

    @property
    def proxy_exceptions(self) -> tuple[str, ...]:
        return values.entries(self.no_proxy)

    @property
    def traces_to_langfuse(self) -> bool:
        """Whether both keys of Langfuse are set."""
        return self.langfuse_public_key is not None and self.langfuse_secret_key is not None

    @property
    def langfuse_url(self) -> str:
        """LANGFUSE_BASE_URL, else LANGFUSE_HOST, else Langfuse's own cloud."""
        return self.langfuse_base_url or self.langfuse_host or _LANGFUSE_CLOUD

    @cached_property
    def secret_values(self) -> tuple[str, ...]:
        """Every secret among the settings, for redaction."""
        given = (getattr(self, name) for name in type(self).model_fields)
        found = {value.get_secret_value() for value in given if isinstance(value, SecretStr)} | set(self.secret_keys)
        if self.database_url is not None:
            found.add(urlsplit(self.database_url).password or "")
        found |= {unquote(urlsplit(proxy or "").password or "") for proxy in (self.http_proxy, self.https_proxy)}
        # A token follows its scheme in a header, and may be quoted alone elsewhere.
        headers = (*self.otel_header_values.values(), *self.siem_header_values.values())
        found |= {word for text in headers for word in text.split() if len(word) >= _MIN_TOKEN}
        return tuple(sorted(found - {""}))


def load_settings(**replaced: str) -> Settings:
    """The environment's settings, with some `replaced`. Raises SettingsError with all faults."""
    try:
        settings = Settings.model_validate({**_given(), **replaced})
    except ValidationError as error:
        # From None: pydantic's message contains the values, including secrets.
        raise _settings_error([_complaint(detail) for detail in error.errors(include_url=False)]) from None
    if (settings.langfuse_public_key is None) != (settings.langfuse_secret_key is None):
        missing = "langfuse_secret_key" if settings.langfuse_public_key else "langfuse_public_key"
        raise _settings_error([_line(missing, "is missing: Langfuse needs both of its keys")])
    if (keyed := _key_of_search(settings)) is not None and getattr(settings, keyed) is None:
        provider = settings.search_provider
        complaint = f"is missing: {variable_name('search_provider')}={provider} needs it"
        raise _settings_error([_line(keyed, complaint)])
    if settings.lacks_vault_login:
        complaint = "needs one login: DRAGOMAN_VAULT_TOKEN, _ROLE_ID with _SECRET_ID, or _KUBERNETES_ROLE"
        raise _settings_error([_line("vault_url", complaint)])
    if settings.postgres_url is not None and settings.secret_key is None:
        complaint = "is missing: all processes on one PostgreSQL database encrypt with it"
        raise _settings_error([_line("secret_key", complaint)])
    return settings


def _given() -> dict[str, str]:
    """Environment variables by field or alias. Empty variables are ignored; case is irrelevant.
    (pydantic-settings does the same at forty times the cost at start.)"""
    present = {name.upper(): value for name, value in os.environ.items() if value}
    given = {}
    for name, field in Settings.model_fields.items():
        if (value := present.get(variable_name(name))) is not None:
            given[field.validation_alias if isinstance(field.validation_alias, str) else name] = value
    return given


def _key_of_search(settings: Settings) -> str | None:
    """The field of the search provider's key, if the provider needs one."""
    return {"brave": "brave_api_key", "tavily": "tavily_api_key"}.get(settings.search_provider)


def forget_secrets(settings: Settings) -> None:
    """Remove what holds secrets from the environment, so that no child process inherits it."""
    for name in Settings.model_fields:
        if name == "database_url" or isinstance(getattr(settings, name), SecretStr):
            os.environ.pop(variable_name(name), None)


def unknown_variables() -> tuple[str, ...]:
    """A warning for each unknown `DRAGOMAN_…` variable, with the nearest setting."""
    names = {name.removeprefix(PREFIX) for name in map(variable_name, Settings.model_fields) if name.startswith(PREFIX)}
    unknown = sorted(
        name
        for name in os.environ
        if name.upper().startswith(PREFIX)
        and not name.startswith(_TEST_PREFIX)
        and name.upper().removeprefix(PREFIX) not in names
    )
    warnings = []
    for name in unknown:
        nearest = difflib.get_close_matches(name.upper().removeprefix(PREFIX), names, n=1)
        hint = f"; did you mean {PREFIX}{nearest[0]}?" if nearest else " and has no effect."
        warnings.append(f"{name} is not a setting{hint}")
    return tuple(warnings)


def base_process_environment() -> dict[str, str]:
    """The part of our environment that a started server inherits; it contains no secret."""
    return process_environment.inherited(os.environ)


def installer_environment() -> dict[str, str]:
    """The part of our environment for npm, pip and uv."""
    return process_environment.for_installers(os.environ)


def variable_name(field: str) -> str:
    alias = Settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else f"{PREFIX}{field.upper()}"


def _settings_error(lines: list[str]) -> SettingsError:
    head = "A setting is wrong:" if len(lines) == 1 else f"{len(lines)} settings are wrong:"
    return SettingsError("\n".join([head, *(f"  {line}" for line in lines)]))


def _complaint(detail: ErrorDetails) -> str:
    named = str(detail["loc"][0])
    by_variable: Mapping[str, str] = {variable_name(field): field for field in Settings.model_fields}
    field = by_variable.get(named, named)
    return _line(field, f"must be {Settings.model_fields[field].description}{_not_this(field, detail['input'])}")


def _line(field: str, complaint: str) -> str:
    name = variable_name(field)
    example = (Settings.model_fields[field].examples or [""])[0]
    return f"{name} {complaint}. Example: {name}={example}"


def _not_this(field: str, value: object) -> str:
    """The wrong value, unless it may contain a secret."""
    holds_secret = not Settings.model_fields[field].repr or "key" in field or not isinstance(value, str)
    return "" if holds_secret or "@" in str(value) else f", not {str(value)[:80]!r}"
