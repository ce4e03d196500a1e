"""Loading the service into this process, at the least cost: what is imported once stays until the end."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_UNUSED = ("fast_depends", "fastapi", "flask", "greenlet", "pydantic_settings", "rich", "starlette", "werkzeug")
"""What dependency-injector and structlog import where it is installed, for features that nothing here uses: a tenth of the
start, and some megabytes."""


@contextmanager
def loading() -> Iterator[None]:
    """Import the service inside, before it has threads: what one of them imported meanwhile might be left out. Nothing is
    collected meanwhile: there is no garbage, and looking for it would take a quarter of the time; what was loaded is not
    looked at by later collections either."""
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    left_out = [name for name in _UNUSED if name not in modules]
    collecting = gc.isenabled()
    gc.disable()
    # An entry of None is how Python itself knows that there is nothing to import.
    modules.update(dict.fromkeys(left_out))
    try:
        yield
    finally:
        for name in left_out:
            del modules[name]
        gc.freeze()
        if collecting:
            gc.enable()
