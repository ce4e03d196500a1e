"""A provider's error for storage and logs: shortened, without the agent's canary tokens."""

from dataclasses import replace

from application.policy.canary_guard import CanaryGuard
from domain.runs.provider_error import ProviderError

MAX_MESSAGE_BYTES = 2 * 1024
_CUT = "… [cut]"


def masked(error: ProviderError, guard: CanaryGuard) -> ProviderError:
    """Tokens are replaced before the text is cut: a partial token would not be found."""
    code = None if error.code is None else guard.words(error.code)
    return replace(error, code=code, message=_capped(guard.words(error.message)))


def _capped(text: str) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= MAX_MESSAGE_BYTES:
        return text
    return encoded[: MAX_MESSAGE_BYTES - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT
