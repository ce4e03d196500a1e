"""Packages made on the spot: complete, without dependencies, so that installing them needs no
registry."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

from tests.integration.mcp.parts import SERVERS

NODE_SERVER = """#!/usr/bin/env node
const lines = require("readline").createInterface({ input: process.stdin });
const tool = { name: "echo", description: "Says it again.", inputSchema: { type: "object" } };
const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") {
    const serverInfo = { name: "tiny", version: "1" };
    answer(id, { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo });
  } else if (method === "tools/list") answer(id, { tools: [tool] });
  else if (method === "tools/call") {
    const text = `${params.arguments.text} from node ${process.version}`;
    answer(id, { content: [{ type: "text", text }] });
  } else console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "unknown method" } }));
});
"""


def npm_tarball(directory: Path, *, name: str = "tiny-server", bin: object = "server.js", **settings: object) -> Path:
    """A `.tgz` as `npm pack` makes it."""
    described = {"name": name, "version": "1.2.3", "bin": bin, **settings}
    path = directory / f"{name}-1.2.3.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for member, text in {"package.json": json.dumps(described), "server.js": NODE_SERVER}.items():
            entry = tarfile.TarInfo(f"package/{member}")
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def wheel(directory: Path, *, scripts: tuple[str, ...] = ("tiny-server",), requires: str | None = None) -> Path:
    """A wheel (PEP 427) whose module is the tests' own plain server."""
    source = (SERVERS / "plain_server.py").read_text(encoding="utf-8")
    metadata = "Metadata-Version: 2.1\nName: tiny_server\nVersion: 1.2.3\n"
    files = {
        "tiny_server.py": source
        + '\n\ndef run():\n    import runpy\n    runpy.run_path(__file__, run_name="__main__")\n',
        "tiny_server-1.2.3.dist-info/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
        "tiny_server-1.2.3.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny_server-1.2.3.dist-info/entry_points.txt": "[console_scripts]\n"
        + "".join(f"{script} = tiny_server:run\n" for script in scripts),
    }
    return _wheel(directory / "tiny_server-1.2.3-py3-none-any.whl", files, "tiny_server-1.2.3")


def library(directory: Path, version: str) -> Path:
    """A wheel of a module that others may require: `tiny-helper`."""
    dist = f"tiny_helper-{version}"
    files = {
        "tiny_helper.py": f"VERSION = {version!r}\n",
        f"{dist}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: tiny_helper\nVersion: {version}\n",
        f"{dist}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    return _wheel(directory / f"{dist}-py3-none-any.whl", files, dist)


def _wheel(path: Path, files: dict[str, str], dist: str) -> Path:
    record = f"{dist}.dist-info/RECORD"
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def sdist(directory: Path) -> Path:
    """A source distribution, which is built when it is installed."""
    source = (SERVERS / "plain_server.py").read_text(encoding="utf-8")
    files = {
        "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "tiny-server"\nversion = "1.2.3"\n[tool.setuptools]\npy-modules = ["tiny_server"]\n',
        "tiny_server.py": source,
        "PKG-INFO": "Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.2.3\n",
    }
    path = directory / "tiny_server-1.2.3.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, text in files.items():
            entry = tarfile.TarInfo(f"tiny_server-1.2.3/{member}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def stand_in(directory: Path, script: str) -> dict[str, str]:
    """An environment whose npm is a shell script of the test's; node is there too, for show."""
    directory.mkdir()
    for name, text in {"npm": script, "node": "exit 1"}.items():
        path = directory / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    return {"PATH": f"{directory}:/usr/bin:/bin", "HOME": str(directory)}
