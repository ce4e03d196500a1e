"""Why runs failed, in a few words for lists. The error's detail says more."""

from collections.abc import Mapping

ERROR_WORDS: Mapping[str, str] = {
    "agent_disabled": "the agent is disabled",
    "internal_error": "an internal error",
    "model_auth": "the provider refused the key",
    "model_context_exceeded": "too long for the model",
    "model_invalid_reply": "an unusable reply of the model",
    "model_rate_limited": "the provider's rate limit",
    "model_rejected": "the provider refused the request",
    "model_stalled": "the model stopped in its reply",
    "model_timeout": "no reply of the model in time",
    "model_unavailable": "the provider is unavailable",
    "output_invalid": "the answer does not fit its schema",
    "too_many_attempts": "several workers were lost",
    "tool_repeatedly_failing": "a tool failed again and again",
}
"""By code. A later release may have more codes."""


def error_word(code: str) -> str:
    """The code in words; of an unknown one, its own."""
    return ERROR_WORDS.get(code) or code.replace("_", " ")
