"""uv as `make peers` installs it: with it, packages of a registry are there in a tenth of the time
that pip takes."""

import os
from pathlib import Path

UV = Path(__file__).parents[4] / ".venv-peers" / "bin" / "uv"


def path_with_uv(directory: Path) -> str:
    """The tests' PATH, with uv on it if it is there (and nothing else of its environment): by way
    of a folder in `directory`."""
    tools = directory / "uv"
    if UV.exists():
        tools.mkdir()
        (tools / "uv").symlink_to(UV)
    return f"{tools}{os.pathsep}{os.environ['PATH']}"
