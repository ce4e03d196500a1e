"""Answers about organizations, keys and model providers, as far as commands read them."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key; `token` is there once, when it was just made."""

    id: str
    name: str
    role: str
    platform: bool = False
    created_at: str = ""
    expires_at: str | None = None
    last_used_at: str | None = None
    revoked_at: str | None = None
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """An organization; `admin_key` is there once, when it was just made."""

    id: str
    name: str
    mcp_enabled: bool = True
    version: int = 1
    created_at: str = ""
    admin_key: ApiKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """A model provider; `api_key` is `[hidden]`, the name of a secret, or None."""

    name: str
    kind: str
    base_url: str
    api_key: str | dict[str, str] | None = None
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledRuns:
    """How many runs have ended, and how many were asked to stop."""

    cancelled: int
    stopping: int
