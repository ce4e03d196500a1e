"""Loading the service into this process, at the least cost: what is imported once stays until the end."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from interfaces.left_out import left_out

_UNUSED = ("fast_depends", "fastapi", "flask", "rich", "starlette", "werkzeug")
"""What dependency-injector and structlog bring along: a tenth of the start, and some megabytes."""


@contextmanager
def loading() -> Iterator[None]:
    """Import the service inside. Nothing is collected meanwhile: there is no garbage, and looking for it would take a
    quarter of the time; what was loaded is not looked at by later collections either."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with left_out(*_UNUSED):
            yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()
