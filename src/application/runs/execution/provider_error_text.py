"""A provider's error for storage and logs: shortened, without the agent's canary tokens."""

from dataclasses import replace

from application.policy.canary_guard import CanaryGuard
from domain.runs.provider_error import ProviderError


def masked(error: ProviderError, guard: CanaryGuard) -> ProviderError:
    """Tokens are replaced before the text is cut: a partial token would not be found."""
    code = None if error.code is None else guard.words(error.code)
    return replace(error, code=code, message=guard.words(error.message)).shortened()
