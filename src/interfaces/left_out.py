"""Importing libraries without what they load where it is installed, for features that nothing here uses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def left_out(*names: str) -> Iterator[None]:
    """While inside, imports of these modules fail as if they were not installed, unless they are loaded already."""
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    missing = [name for name in names if name not in modules]
    # An entry of None is how Python itself knows that there is nothing to import.
    modules.update(dict.fromkeys(missing))
    try:
        yield
    finally:
        for name in missing:
            del modules[name]
