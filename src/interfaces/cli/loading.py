"""Loading the service into this process, at the least cost: what is imported once stays until the end."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_UNUSED = ("fast_depends", "fastapi", "flask", "rich", "starlette", "werkzeug")
"""What dependency-injector and structlog import where it is installed, for features that are not used here: a tenth of the
start, and some megabytes."""


@contextmanager
def loading() -> Iterator[None]:
    """Import the service inside. Nothing is collected meanwhile: there is no garbage, and looking for it would take a
    quarter of the time; what was loaded is not looked at by later collections either."""
    left_out = [name for name in _UNUSED if name not in sys.modules]
    collecting = gc.isenabled()
    gc.disable()
    # An entry of None makes an import fail as that of a package that is not installed.
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules.update(dict.fromkeys(left_out))
    try:
        yield
    finally:
        for name in left_out:
            del sys.modules[name]
        gc.freeze()
        if collecting:
            gc.enable()
