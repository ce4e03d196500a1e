"""What docs/deploy holds works as far as it can be tried without an engine or a machine of one's
own: the Containerfile's commands are executed in order, and what they make serves as its user would
have it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from infrastructure.settings import Settings
from tests.architecture.published_files import tracked_files
from tests.completeness import beyond
from tests.e2e.processes import until
from tests.e2e.service import ROOT, STOP_S
from tests.integration.mcp.install.uv import UV
from tests.integration.mcp.parts import free_port

DEPLOY = ROOT / "docs" / "deploy"
UNITS = ("dragoman.service", "dragoman-worker@.service")
IMAGE_S = 300.0
"""How long the service in the image may take: its first start compiles what it imports."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A line of the Containerfile, continued ones joined."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


def stages() -> list[list[Instruction]]:
    """The instructions of each stage, from its FROM on."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found: list[list[Instruction]] = []
    for line in lines:
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, rest.strip()))
    return found


def only(stage: list[Instruction], name: str) -> Instruction:
    [instruction] = [instruction for instruction in stage if instruction.name == name]
    return instruction


@pytest.mark.requirement("U1")
def test_everything_that_is_copied_is_in_the_checkout_and_let_through_to_the_builder() -> None:
    published = [path.as_posix() for path in tracked_files(ROOT)]
    let_through = (ROOT / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [word for step in stages()[0] if step.name == "COPY" for word in step.words[:-1]]
    assert copied
    for source in copied:
        assert any(path == source or path.startswith(f"{source}/") for path in published), source
        assert f"!{source}" in let_through, source


def test_the_image_runs_as_an_ordinary_user_and_says_whether_it_is_alive() -> None:
    run = stages()[-1]
    user = only(run, "USER").text
    assert int(user) > 0, "an engine that refuses root sees a number"
    created = next(step.words for step in run if step.name == "RUN")
    assert created[created.index("--uid") + 1] == user
    assert created[created.index("--home-dir") + 1] == only(run, "VOLUME").text
    names = [step.name for step in run]
    assert names.index("USER") < names.index("HEALTHCHECK") < names.index("ENTRYPOINT")
    assert json.loads(only(run, "ENTRYPOINT").text) == ["dragoman"]
    assert json.loads(only(run, "CMD").text) == ["serve"]


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """A fresh clone: what is committed or about to be, and nothing else."""
    checkout = tmp_path / "context"
    for path in tracked_files(ROOT):
        if (ROOT / path).is_file():
            (checkout / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, checkout / path)
    return checkout


def built(context: Path, place: Path) -> Path:
    """Execute the first stage with `place` for the root of its file system; where its environment
    is."""
    work, environment = place / "build", place / "srv" / "dragoman"
    work.mkdir(parents=True)
    for step in stages()[0][1:]:
        if step.name == "COPY":
            *sources, target = step.words
            for source in sources:
                into = work / target
                if (context / source).is_dir():
                    shutil.copytree(context / source, into, dirs_exist_ok=True)
                else:
                    to = into / Path(source).name if target.endswith("/") else into
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(context / source, to)
        elif step.name == "RUN":
            command = as_tested(step.text, environment)
            done = subprocess.run(
                ["sh", "-ec", command], cwd=work, env=clean(), capture_output=True, text=True, check=False, timeout=800
            )
            if any(said in done.stderr for said in ("No matching distribution", "Connection", "Failed to fetch")):
                pytest.skip(beyond("no package registry can be reached"))
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        else:
            assert (step.name, step.text) == ("WORKDIR", "/build")
    return environment


def as_tested(command: str, environment: Path) -> str:
    """A command of the image with the tests' interpreter for the image's own, and with uv for pip,
    where it is there: the same packages by the same hashes in a hundredth of the time."""
    pip, uv = (
        f"{environment}/bin/pip install --no-cache-dir",
        f"{UV} pip install --quiet --python {environment}/bin/python",
    )
    here = command.replace("/srv/dragoman", str(environment)).replace("python3 -m venv", f"{sys.executable} -m venv")
    return here.replace(pip, uv) if UV.exists() else here


def clean(**more: str) -> dict[str, str]:
    """The environment without what points at the checkout or sets Dragoman up."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DRAGOMAN_", "VIRTUAL_ENV"))
    }
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **more}


@pytest.mark.requirement("G2", "H4")
@pytest.mark.timeout(1200)
def test_what_the_containerfile_builds_serves_and_its_health_check_sees_it(context: Path, tmp_path: Path) -> None:
    environment = built(context, tmp_path / "image")
    shutil.rmtree(context)  # the second stage has nothing of it
    shutil.rmtree(tmp_path / "image" / "build")
    run = stages()[-1]
    given = dict(assignment.partition("=")[::2] for assignment in only(run, "ENV").words)
    port = str(free_port())
    settings = {
        **given,
        "PATH": f"{environment}/bin:{os.environ['PATH']}",
        "DRAGOMAN_HOME": str(tmp_path / "data"),
        "DRAGOMAN_HOST": "127.0.0.1",
        "DRAGOMAN_PORT": port,
    }
    command = [
        str(environment / "bin" / json.loads(only(run, "ENTRYPOINT").text)[0]),
        *json.loads(only(run, "CMD").text),
    ]
    check = json.loads(only(run, "HEALTHCHECK").text.partition("CMD ")[2])

    def healthy() -> bool:
        probe = [str(environment / "bin" / check[0]), *check[1:]]
        return (
            subprocess.run(probe, env=clean(**settings), capture_output=True, check=False, timeout=IMAGE_S).returncode
            == 0
        )

    assert not healthy()
    with subprocess.Popen(
        command, cwd=tmp_path, env=clean(**settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            until(lambda: process.poll() is not None or healthy(), IMAGE_S, what="the service in the image")
            key = (tmp_path / "data" / "admin.key").read_text(encoding="utf-8").strip()
            url = f"http://127.0.0.1:{port}"
            headers = {"Authorization": f"Bearer {key}"}
            assert httpx.get(f"{url}/v1/agents", headers=headers, timeout=60).is_success
            assert_models_of_clouds_are_usable(url, headers)
            assert "<html" in httpx.get(f"{url}/console", follow_redirects=True, timeout=60).text
            process.terminate()
            assert process.wait(timeout=STOP_S) == 0
        finally:
            process.kill()


def assert_models_of_clouds_are_usable(url: str, headers: dict[str, str]) -> None:
    """Saving an agent is refused if its model needs the extra `providers`, and it is missing."""
    key = "OTHERKEYOTHERKEY0001:otherSecretOfTheTests"
    provider = {"name": "aws", "kind": "bedrock", "api_key": key, "cloud": {"region": "eu-central-1"}}
    agent = {"name": "cloudy", "model": "aws:amazon.nova-pro-v1:0"}
    for path, body in (("model-providers", provider), ("agents", agent)):
        answer = httpx.post(f"{url}/v1/{path}", headers=headers, json=body, timeout=60)
        assert answer.status_code == 201, answer.text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason=beyond("there is no systemd"))
@pytest.mark.parametrize("name", UNITS)
def test_systemd_finds_nothing_wrong_with_a_unit(name: str, tmp_path: Path) -> None:
    dragoman = Path(sys.executable).with_name("dragoman")
    unit = tmp_path / name.replace("@", "@1")
    unit.write_text(
        (DEPLOY / name).read_text(encoding="utf-8").replace("/srv/dragoman/.venv/bin/dragoman", str(dragoman))
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False, timeout=120
    )
    if "Failed to" in done.stderr and "manager" in done.stderr:
        pytest.skip(beyond("systemd cannot look at units here"))
    # It looks at what the unit depends on, too, which is the machine's.
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []


def test_units_give_a_process_the_time_that_it_needs_to_stop() -> None:
    for name in UNITS:
        text = (DEPLOY / name).read_text(encoding="utf-8")
        assert int(str(re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)[1])) >= 20  # type: ignore[index]
        assert "KillMode=mixed" in text
        assert "User=dragoman" in text


def test_the_file_of_settings_names_settings_and_starts_as_it_is() -> None:
    lines = (DEPLOY / "dragoman.env").read_text(encoding="utf-8").splitlines()
    assignments = dict(line.lstrip("#").partition("=")[::2] for line in lines if re.match(r"#?DRAGOMAN_", line))
    assert assignments
    for name in assignments:
        assert name.removeprefix("DRAGOMAN_").lower() in Settings.model_fields, name
    assert all("=" in line for line in lines if line.startswith("DRAGOMAN_"))
    assert not any(line.startswith("DRAGOMAN_") and line.endswith("=") for line in lines), (
        "an empty value is a wrong one"
    )


@pytest.mark.requirement("E2")
def test_the_proxy_holds_back_no_event_and_closes_unused_connections_first() -> None:
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    for needed in (
        "proxy_buffering off;",
        'proxy_set_header Connection "";',
        "proxy_http_version 1.1;",
        "location = /metrics",
    ):
        assert needed in text
    assert int(str(re.search(r"keepalive_timeout (\d+)s;", text)[1])) < 75  # type: ignore[index]
    assert text.count("{") == text.count("}")


@pytest.mark.requirement("G2", "K6", "U1")
def test_the_compose_file_starts_a_service_and_two_workers_on_one_database_with_settings_that_exist() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert services.keys() == {"database", "service", "worker"}
    assert services["worker"]["deploy"]["replicas"] == 2
    aliases = {field.validation_alias for field in Settings.model_fields.values()}
    for name in ("service", "worker"):
        one = services[name]
        assert one["build"]["dockerfile"] == "Containerfile"
        assert (ROOT / one["build"]["dockerfile"]).is_file()
        assert one["command"][0] in {"serve", "worker"}
        assert one["depends_on"]["database"]["condition"] == "service_healthy"
        for variable in one["environment"]:
            known = variable.removeprefix("DRAGOMAN_").lower() in Settings.model_fields
            assert known if variable.startswith("DRAGOMAN_") else variable in aliases, variable
    assert services["service"]["environment"].items() <= services["worker"]["environment"].items()
    user = services["database"]["environment"]
    url = services["service"]["environment"]["DRAGOMAN_DATABASE_URL"]
    assert url.startswith(f"postgresql://{user['POSTGRES_USER']}:")
    assert url.endswith(f"@database/{user['POSTGRES_DB']}")
