"""The extra `providers`, with which models are called over vendors' own APIs."""

from importlib.util import find_spec

EXTRA_MISSING = (
    "needs the extra `providers`, which is not installed. Install it (pip install 'dragoman[providers]') and restart."
)
_PARTS = ("pydantic_ai", "botocore", "google.genai")


def is_extra_installed() -> bool:
    """Whether the packages of the extra are there. None of them is imported."""
    try:
        return all(find_spec(part) is not None for part in _PARTS)
    except ModuleNotFoundError:  # of a parent
        return False
