"""Outcome of a test of a model provider."""

from dataclasses import dataclass
from enum import StrEnum

from domain.runs.provider_error import ProviderError


class ProviderCheckName(StrEnum):
    """What is checked. The values are part of the public contract."""

    CREDENTIALS = "credentials"
    MODEL = "model"
    TOOL_CALL = "tool_call"
    STREAMING = "streaming"


class ProviderCheckOutcome(StrEnum):
    """The values are part of the public contract."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCheck:
    """One line of a test. `detail` is a sentence; `provider_error` is what the provider said."""

    deployment: str | None
    check: ProviderCheckName
    outcome: ProviderCheckOutcome
    detail: str
    latency_ms: int = 0
    provider_error: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCheckResult:
    """`model` is `PROVIDER:NAME`, or None if none was tested. Checks are in the order of the
    provider's deployments."""

    provider: str
    model: str | None
    checks: tuple[ProviderCheck, ...]

    @property
    def ok(self) -> bool:
        return all(check.outcome is ProviderCheckOutcome.OK for check in self.checks)
