"""Loads the service into this process quickly; imported modules stay loaded."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_UNUSED = ("fast_depends", "fastapi", "flask", "greenlet", "pydantic_settings", "rich", "starlette", "werkzeug")
"""Optional imports of dependency-injector and structlog that we do not use: a tenth of the start,
and some megabytes."""


@contextmanager
def loading() -> Iterator[None]:
    """Context for importing the service, before any threads start. Garbage collection is off
    inside, because it would take a quarter of the time. Loaded objects are exempt from later
    collections."""
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    left_out = [name for name in _UNUSED if name not in modules]
    collecting = gc.isenabled()
    gc.disable()
    # For Python an entry of None means that the module does not exist.
    modules.update(dict.fromkeys(left_out))
    try:
        yield
    finally:
        for name in left_out:
            del modules[name]
        gc.freeze()
        if collecting:
            gc.enable()
