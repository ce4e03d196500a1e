"""Code of Python packages that runs while they are installed, on each profile that this machine
holds."""

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from domain.mcp.server import McpServer
from infrastructure.settings import installer_environment
from tests.completeness import beyond
from tests.integration.confinement.world import PROFILES, held_here
from tests.integration.mcp.install.packages import wheel
from tests.integration.mcp.install.uv import UV
from tests.integration.mcp.install.workshop import Workshop, python

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("S1")]

SPY = """
import json, os
found = {"variables": dict(os.environ)}
for path in PATHS:
    try:
        found[path] = open(path).read()
    except OSError as exc:
        found[path] = type(exc).__name__
"""
BACKEND = """
import zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "spy-1.0-py3-none-any.whl"
    info = "spy-1.0.dist-info"
    with zipfile.ZipFile(directory + "/" + name, "w") as archive:
        archive.writestr("spy.json", json.dumps(found))
        archive.writestr("spy.py", "def run(): pass")
        archive.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: spy\\nVersion: 1.0\\n")
        archive.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(info + "/entry_points.txt", "[console_scripts]\\nspy = spy:run\\n")
        archive.writestr(info + "/RECORD", "")
    return name
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "spy"\nversion = "1.0"\n'


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The operator's configuration of pip and uv."""
    user = tmp_path / "user"
    files = {
        ".netrc": "machine index.example login me password password",
        ".config/pip/pip.conf": "[global]\nextra-index-url = http://me:password@127.0.0.1:9/simple\n",
        ".config/uv/uv.toml": 'extra-index-url = ["http://me:password@127.0.0.1:9/simple"]\n',
    }
    for name, text in files.items():
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text(text)
    return [user / name for name in files]


def a_workshop(profile: str, files: list[Path], *, uv: bool = False) -> Workshop:
    if not held_here(profile):
        pytest.skip(beyond(f"this machine does not hold the profile {profile}"))
    environment = {
        "PATH": os.environ["PATH"],
        **{name: value for name, value in installer_environment().items() if name in ("PIP_CERT", "SSL_CERT_FILE")},
        "HOME": str(files[0].parent),
        "UV_INDEX_OWN_PASSWORD": "password",
        "PIP_CLIENT_CERT": "password",
        "HTTPS_PROXY": "http://me:password@127.0.0.1:9",
        "all_proxy": "me:password@127.0.0.1:9",
        "UV_INDEX": "http://127.0.0.1:9/simple?token=password",
    }
    home = files[0].parents[1] / "home"
    return Workshop(home, environment=environment, profile=profile, uv=str(UV) if uv else None)


def seen(workshop: Workshop, server: McpServer, name: str) -> dict[str, object]:
    assert server.installation is not None
    (file,) = workshop.directories.path(server.installation.location).glob(f"**/{name}")
    found = json.loads(file.read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("profile", PROFILES)
async def test_code_that_is_built_has_no_configuration_of_the_operator(
    profile: str, files: list[Path], tmp_path: Path
) -> None:
    archive = tmp_path / "spy-1.0.tar.gz"
    backend = SPY.replace("PATHS", repr([str(file) for file in files])) + BACKEND
    members = {
        "pyproject.toml": PROJECT,
        "backend.py": backend,
        "PKG-INFO": "Metadata-Version: 2.1\nName: spy\nVersion: 1.0\n",
    }
    with tarfile.open(archive, "w:gz") as opened:
        for name, text in members.items():
            entry = tarfile.TarInfo(f"spy-1.0/{name}")
            entry.size = len(text.encode())
            opened.addfile(entry, io.BytesIO(text.encode()))
    workshop = a_workshop(profile, files)
    server = await workshop.install(python(str(archive)))
    found = seen(workshop, server, "spy.json")
    assert {found[str(file)] for file in files} <= {"PermissionError", "FileNotFoundError"}
    assert "password" not in str(found)


@pytest.mark.parametrize("uv", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
async def test_code_that_runs_as_the_environment_starts_has_no_configuration_of_the_operator(
    profile: str, uv: bool, files: list[Path], tmp_path: Path
) -> None:
    if uv and not UV.exists():
        pytest.skip("needs `make peers`")
    package = wheel(tmp_path)
    hook = SPY.replace("PATHS", repr([str(file) for file in files])) + (
        "import sys\nwith open(sys.prefix + f'/started-{os.getpid()}.json', 'w') as file: json.dump(found, file)\n"
    )
    with zipfile.ZipFile(package, "a") as archive:
        archive.writestr("hook.pth", f"import sys; exec({hook!r})\n")
    workshop = a_workshop(profile, files, uv=uv)
    server = await workshop.install(python(str(package)))
    assert server.installation is not None
    place = workshop.directories.path(server.installation.location)
    assert list(place.glob("venv/**/tiny_server.*.pyc"))
    started = list(place.glob("**/started-*.json"))
    assert started
    for file in started:
        assert "password" not in file.read_text()
