"""The Helm chart, rendered by Helm, checked by the schemas of Kubernetes, and executed as far as
that goes without a cluster: its commands run with its environment on a real PostgreSQL and answer
its probes."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
import yaml
from litestar.routes import HTTPRoute

from infrastructure.settings import Settings
from interfaces.http.protocols_entry import PATHS as PROTOCOLS
from tests.databases import PostgresDatabases
from tests.e2e.processes import until
from tests.e2e.service import ROOT, Json
from tests.integration.http.service import Harness
from tests.integration.mcp.parts import free_port

CHART = ROOT / "deploy" / "helm"
TOOLS = ROOT / ".venv-peers" / "bin"
pytestmark = [
    pytest.mark.requirement("K6"),
    pytest.mark.skipif(not (TOOLS / "helm").exists(), reason="needs `make peers`"),
]

GRACE_S = 25 + 5
"""What a process may take to stop (docs/guides/deploy.md), and the pause before it."""
VERSIONS = ("1.29", "1.33", "1.37")
"""Of Kubernetes: old and new ones that clusters have."""
LEAST = ("existingSecret=dragoman", "networkPolicy.database.cidrs={10.2.0.5/32,10.2.0.6/32}")
EVERYTHING = (
    "autoscaling.enabled=true",
    "autoscaling.prometheus=http://prometheus:9090",
    "ingress.enabled=true",
    "ingress.host=agents.example.com",
    "ingress.className=nginx",
    "ingress.tlsSecret=tls",
    "networkPolicy.privateDestinations={10.1.0.0/16}",
    "networkPolicy.clients[0].namespaceSelector.matchLabels.name=ingress",
    "migrations.existingSecret=owner",
    "imagePullSecrets[0].name=registry",
    "env.DRAGOMAN_LOG_SLOW_MS=500",
    r"serviceAccount.annotations.azure\.workload\.identity/client-id=app-1",
)


def helm(command: str, *values: str) -> "subprocess.CompletedProcess[str]":
    named = [CHART] if command == "lint" else ["agents", CHART]
    settings = [part for value in values for part in ("--set", value)]
    return subprocess.run([TOOLS / "helm", command, *named, *settings], capture_output=True, text=True, check=False)


def text_of(*values: str) -> str:
    done = helm("template", *LEAST, *values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(*values: str) -> dict[str, Json]:
    """The manifests by kind and component or name."""
    manifests = [manifest for manifest in yaml.safe_load_all(text_of(*values)) if manifest]
    found = {f"{manifest['kind']}/{manifest['metadata']['name']}": manifest for manifest in manifests}
    assert len(found) == len(manifests)
    return found


@pytest.fixture(scope="module")
def everything() -> dict[str, Json]:
    return rendered(*EVERYTHING)


def pods(manifests: dict[str, Json]) -> dict[str, Json]:
    """The pod template of each workload."""
    return {name: found["spec"]["template"] for name, found in manifests.items() if "template" in found.get("spec", {})}


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["least", "everything"])
def test_helm_finds_nothing_wrong_with_the_chart(values: tuple[str, ...]) -> None:
    done = helm("lint", *LEAST, *values)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["least", "everything"])
def test_what_it_renders_is_valid_for_kubernetes(version: str, values: tuple[str, ...], tmp_path: Path) -> None:
    manifests = tmp_path / "manifests.yaml"
    manifests.write_text(text_of(*values), encoding="utf-8")
    command = [str(TOOLS / "kubernetes-validate"), "--strict", "--kubernetes-version", version, str(manifests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    faults = [line for line in said.splitlines() if not line.startswith("INFO")]
    # The schema of KEDA's kind is not among those of Kubernetes.
    assert all("keda.sh" in line for line in faults), said


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), "existingSecret"),
        (("existingSecret=s", "autoscaling.enabled=true"), "prometheus"),
        (("existingSecret=s", "ingress.enabled=true"), "host"),
        (("existingSecret=s", "env.DRAGOMAN_SECRET_KEY=in-the-clear-0123456789"), "DRAGOMAN_SECRET_KEY"),
        ((*LEAST, "env.OPENAI_API_KEY=in-the-clear"), "OPENAI_API_KEY"),
        ((*LEAST, "env.DRAGOMAN_SIEM_HEADERS=in-the-clear"), "DRAGOMAN_SIEM_HEADERS"),
        ((*LEAST, "env.OpenAI_Api_Key=in-the-clear"), "OpenAI_Api_Key"),
        ((*LEAST, "env.PGPASSWORD=in-the-clear"), "PGPASSWORD"),
        ((*LEAST, "env.HTTP_PROXY=http://name:in-the-clear@proxy.internal:3128"), "HTTP_PROXY"),
        ((*LEAST, "env.DRAGOMAN_LOG_LEVLE=debug"), "DRAGOMAN_LOG_LEVLE"),
        (("existingSecret=s", "worker.replica=3"), "replica"),
        (("existingSecret=s",), "cidrs"),
        (("existingSecret=s", "service.storage=much"), "storage"),
        (("existingSecret=s", "networkPolicy.database.cidrs={10.2.0.5}"), "cidrs"),
        (("existingSecret=s", "networkPolicy.database.cidrs={db.example.com/32}"), "cidrs"),
        ((*LEAST, "networkPolicy.privateDestinations={10.1.0.0/33}"), "privateDestinations"),
        ((*EVERYTHING, *LEAST, "autoscaling.minReplicas=9", "autoscaling.maxReplicas=8"), "minReplicas"),
    ],
)
def test_values_that_are_missing_or_wrong_are_refused_by_name(values: tuple[str, ...], named: str) -> None:
    done = helm("template", *values)
    assert done.returncode != 0
    assert named in done.stderr
    assert "in-the-clear" not in done.stderr


def test_settings_that_are_no_secrets_and_variables_of_other_programs_are_taken() -> None:
    given = (
        "LANGFUSE_PUBLIC_KEY=pk-lf-1",
        "DRAGOMAN_A2A_SIGNING_KEY=/data/a2a.pem",
        "HTTP_PROXY=http://proxy:3128",
        "TZ=UTC",
    )
    text = text_of(*(f"env.{one}" for one in given))
    assert all(f"- name: {one.partition('=')[0]}\n" in text for one in given)


def test_networks_of_both_versions_are_taken() -> None:
    text = text_of("networkPolicy.privateDestinations={10.1.0.0/16,fd00::/8,2001:db8::1/128}")
    assert all(network in text for network in ("10.1.0.0/16", "fd00::/8", "2001:db8::1/128"))


def test_no_pod_has_root_privileges_a_writable_image_or_a_token_of_the_cluster(everything: dict[str, Json]) -> None:
    templates = pods(everything)
    assert {name.partition("/")[0] for name in templates} == {"StatefulSet", "Deployment", "Job"}
    for template in templates.values():
        pod = template["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["terminationGracePeriodSeconds"] >= GRACE_S
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounted == {"/data", "/tmp"}


def test_pods_of_services_and_workers_have_the_labels_of_an_identity_of_a_cloud(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text('podLabels: {azure.workload.identity/use: "true"}', encoding="utf-8")
    command = [str(part) for part in (TOOLS / "helm", "template", "agents", CHART, "--values", values)]
    command += [part for value in LEAST for part in ("--set", value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    manifests = [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]
    workloads = {
        manifest["kind"]: manifest for manifest in manifests if manifest["kind"] in {"StatefulSet", "Deployment"}
    }
    assert set(workloads) == {"StatefulSet", "Deployment"}
    for workload in workloads.values():
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert labels["azure.workload.identity/use"] == "true"
        assert "azure.workload.identity/use" not in workload["spec"]["selector"]["matchLabels"]


def test_the_image_runs_as_the_user_of_the_pods() -> None:
    assert "USER 10001" in (ROOT / "Containerfile").read_text(encoding="utf-8")


def test_secrets_come_by_reference_and_settings_by_names_that_exist(everything: dict[str, Json]) -> None:
    for template in pods(everything).values():
        [container] = template["spec"]["containers"]
        sources = [source["secretRef"]["name"] for source in container["envFrom"]]
        assert sources == (["dragoman", "owner"] if container["name"] == "migrations" else ["dragoman"])
        for entry in container["env"]:
            name = entry["name"].removeprefix("DRAGOMAN_").lower()
            assert entry["name"] == "HOME" or name in Settings.model_fields
    chart = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"] == chart


def test_what_selects_pods_selects_those_of_one_component(everything: dict[str, Json]) -> None:
    labels = {
        template["metadata"]["labels"]["app.kubernetes.io/component"]: template["metadata"]["labels"]
        for template in pods(everything).values()
    }
    selected: dict[str, set[str]] = {}
    for name, manifest in everything.items():
        spec = manifest.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector"))
        if selector is None:
            continue
        wanted = selector.get("matchLabels", selector)
        selected[name] = {component for component, has in labels.items() if wanted.items() <= has.items()}
    assert {len(components) for components in selected.values()} == {1}
    assert selected["Service/agents-dragoman"] == {"service"}
    assert {name.rpartition("-")[2] for name in selected if name.startswith("PodDisruptionBudget/")} == {
        "service",
        "worker",
    }
    policies = {name for name in selected if name.startswith("NetworkPolicy/")}
    assert set().union(*(selected[name] for name in policies)) == labels.keys()


def test_pods_reach_public_addresses_the_database_and_what_is_named_and_no_metadata_of_clouds(
    everything: dict[str, Json],
) -> None:
    for component in ("service", "worker"):
        egress = everything[f"NetworkPolicy/agents-dragoman-{component}"]["spec"]["egress"]
        blocks = [
            (peer["ipBlock"], rule.get("ports")) for rule in egress for peer in rule.get("to", []) if "ipBlock" in peer
        ]
        assert ({"cidr": "10.1.0.0/16"}, None) in blocks
        assert ({"cidr": "10.2.0.6/32"}, [{"port": 5432}]) in blocks
        for block, ports in blocks:
            if block["cidr"] == "0.0.0.0/0" and ports is None:
                assert {"169.254.0.0/16", "10.0.0.0/8", "127.0.0.0/8"} <= set(block["except"])
    migrations = everything["NetworkPolicy/agents-dragoman-migrations"]["spec"]
    assert migrations["ingress"] == []
    assert (
        "pre-install"
        in everything["NetworkPolicy/agents-dragoman-migrations"]["metadata"]["annotations"]["helm.sh/hook"]
    )
    assert len(migrations["egress"]) == 2


async def test_the_ingress_passes_every_route_but_metrics(everything: dict[str, Json]) -> None:
    paths = everything["Ingress/agents-dragoman"]["spec"]["rules"][0]["http"]["paths"]
    prefixes = {path["path"] for path in paths if path["pathType"] == "Prefix"}
    exact = {path["path"] for path in paths if path["pathType"] == "Exact"}
    async with Harness().service() as service:
        routes = {route.path for route in service.app.routes if isinstance(route, HTTPRoute)}
    routes |= {"/console", "/mcp", *PROTOCOLS}
    passed = {
        path
        for path in routes
        if path in exact or any(path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes)
    }
    assert routes - passed == {"/metrics"}


def test_workers_are_scaled_by_gauges_that_exist_and_not_by_a_number_too(everything: dict[str, Json]) -> None:
    scaled = everything["ScaledObject/agents-dragoman-worker"]["spec"]
    workers = everything[f"Deployment/{scaled['scaleTargetRef']['name']}"]
    assert "replicas" not in workers["spec"]
    assert rendered()["Deployment/agents-dragoman-worker"]["spec"]["replicas"] == 2
    assert not any("ScaledObject" in name for name in rendered())
    assert all(isinstance(trigger["metadata"]["threshold"], str) for trigger in scaled["triggers"]), "KEDA takes texts"
    assert len(measured(scaled)) == 2


def _reports(metrics: str, metric: str) -> bool:
    """Whether the page has this metric; one for which the database was read too late has not."""
    return f"\n{metric}{{" in httpx.get(metrics, trust_env=False, timeout=60).text


def measured(scaled: Json) -> set[str]:
    """The metrics by which workers are scaled."""
    queries = " ".join(trigger["metadata"]["query"] for trigger in scaled["triggers"])
    return set(re.findall(r"dragoman_\w+", queries))


@contextmanager
def container_of(template: Json, place: Path, port: int, **secret: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Its container's command with its environment and the Secret's; `place` has what is
    mounted."""
    [container] = template["spec"]["containers"]
    given = {entry["name"]: str(entry["value"]).replace("/data", str(place / "data")) for entry in container["env"]}
    given = {name: value.replace("8321", str(port)) for name, value in given.items()}
    (place / "data").mkdir(parents=True, exist_ok=True)
    (place / "tmp").mkdir(exist_ok=True)
    kept = {"PATH": os.environ["PATH"], "TMPDIR": str(place / "tmp"), "DRAGOMAN_HOST": "127.0.0.1"}
    environment = {**kept, "DRAGOMAN_PORT": str(port), **given, **secret}
    command = [str(Path(sys.executable).with_name("dragoman")), *container["args"]]
    with (place / "said").open("wb") as said:
        process = subprocess.Popen(command, cwd=place, env=environment, stdout=said, stderr=said)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def drain_of(template: Json) -> list[str]:
    """The command before a pod's container is stopped, which has process 1."""
    [container] = template["spec"]["containers"]
    program, *arguments = container["lifecycle"]["preStop"]["exec"]["command"]
    assert (program, arguments[1]) == ("dragoman", "1")
    return list(arguments)


def test_a_worker_that_is_removed_has_the_time_that_is_set_to_finish_its_runs() -> None:
    template = rendered("worker.drainSeconds=900")["Deployment/agents-dragoman-worker"]["spec"]["template"]
    assert drain_of(template) == ["drain", "1", "--within", "900"]
    assert template["spec"]["terminationGracePeriodSeconds"] > 900 + 60
    [container] = template["spec"]["containers"]
    assert container["livenessProbe"]["terminationGracePeriodSeconds"] == 35, "but not if it hangs"


@pytest.mark.timeout(400)
def test_its_job_services_and_workers_share_a_database_answer_their_probes_and_report_what_scales_them(
    tmp_path: Path, postgres_databases: PostgresDatabases, everything: dict[str, Json]
) -> None:
    templates = {name.partition("/")[0]: template for name, template in pods(rendered()).items()}
    ports = {"StatefulSet": free_port(), "Deployment": free_port()}
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with postgres_databases.fresh() as url, ExitStack() as running:
        secret = {"DRAGOMAN_DATABASE_URL": url, "DRAGOMAN_SECRET_KEY": "a key of the chart's test"}
        with container_of(templates["Job"], tmp_path / "job", 0, **secret) as job:
            assert job.wait(timeout=120) == 0, (tmp_path / "job" / "said").read_text()
        for kind, port in ports.items():
            process = running.enter_context(container_of(templates[kind], tmp_path / kind, port, **secret))
            processes[kind] = process
            [container] = templates[kind]["spec"]["containers"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                path = container[probe]["httpGet"]["path"]
                until(lambda: process.poll() is not None or answers(port, path), what=f"{probe} of {kind}")  # noqa: B023 (called at once)
                assert process.poll() is None, (tmp_path / kind / "said").read_text()
            scripts = tmp_path / kind / "data" / "home" / "scripted"
            scripts.mkdir(exist_ok=True)
            (scripts / "hello.yaml").write_text(json.dumps({"turns": [{"text": "Hello."}]}), encoding="utf-8")
        key = (tmp_path / "StatefulSet" / "data" / "home" / "admin.key").read_text().strip()
        service = running.enter_context(
            httpx.Client(
                base_url=f"http://127.0.0.1:{ports['StatefulSet']}/v1",
                headers={"Authorization": f"Bearer {key}"},
                timeout=60,
                trust_env=False,
            )
        )
        agent = {"name": "hello", "model": "scripted:hello.yaml", "instructions": "Say hello."}
        assert service.post("/agents", json=agent).is_success
        run = service.post("/runs/wait", json={"agent": "hello", "input": "Hello?"}).json()["run"]
        assert run["status"] == "completed", run
        metrics = f"http://127.0.0.1:{ports['Deployment']}/metrics"
        for metric in measured(everything["ScaledObject/agents-dragoman-worker"]["spec"]):
            until(partial(_reports, metrics, metric), what=metric)
        drain, _, *within = drain_of(templates["Deployment"])
        dragoman = str(Path(sys.executable).with_name("dragoman"))
        worker = processes["Deployment"]
        subprocess.run([dragoman, drain, str(worker.pid), *within], check=True, timeout=120, capture_output=True)
        assert worker.wait(timeout=60) == 0


def answers(port: int, path: str) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=60).is_success
    except httpx.TransportError:
        return False
