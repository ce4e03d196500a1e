"""The checks of `dragoman doctor` that look at settings, at what they name, and at the database."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from infrastructure.persistence.engine.sqlite.vacuum import FileSpace
from infrastructure.settings import Settings
from interfaces.cli.diagnosis.configuration import configuration_findings, egress_finding
from interfaces.cli.diagnosis.external_secrets import external_secret_findings
from interfaces.cli.diagnosis.finding import Finding, State
from interfaces.cli.diagnosis.reach import port_finding, reach_findings, shown_address
from interfaces.cli.diagnosis.service import provider_findings
from interfaces.cli.diagnosis.siem import siem_findings
from interfaces.cli.diagnosis.storage import can_be_opened, clock_finding, database_findings

OK, WARNING, PROBLEM = State.OK, State.WARNING, State.PROBLEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A report on a healthy database, but for what is given."""

    name: str = "PostgreSQL 17.2"
    is_there: bool = True
    failure: str | None = None
    revision: str | None = "0030"
    expected: str = "0030"
    is_older: bool = False
    is_compatible: bool = False
    oldest: str = "0028"
    queue_is_current: bool = True
    clock_ahead_s: float | None = 0.0
    damage: str | None = None
    space: FileSpace | None = None


def states(findings: list[Finding]) -> dict[str, State]:
    assert all(found.advice for found in findings if found.state is not OK), "each says what to do"
    return {found.check: found.state for found in findings}


def of_settings(home: Path, **settings: object) -> dict[str, State]:
    return states(list(configuration_findings(Settings(home=home, **settings))))  # type: ignore[arg-type]


async def reached(answer: Callable[[httpx.Request], httpx.Response], **settings: object) -> dict[str, State]:
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return states(await reach_findings(Settings(**settings), client=client))  # type: ignore[arg-type]


def answering(status: int) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(status)


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no route", request=request)


async def test_a_key_that_no_header_can_hold_is_a_finding_and_passwords_in_addresses_are_not_shown() -> None:
    assert await reached(answering(200), OPENAI_API_KEY=SecretStr("sk-é\n")) == {"model provider openai": PROBLEM}
    address = "http://user:hidden@models.test/v1?key=hidden"
    client = httpx.AsyncClient(transport=httpx.MockTransport(unreachable))
    settings = Settings(OPENAI_BASE_URL=address, OTEL_EXPORTER_OTLP_ENDPOINT=address)  # type: ignore[call-arg]
    findings = await reach_findings(settings, client=client)
    findings += provider_findings({"openai": False}, {"openai": address})
    assert len(findings) == 3
    assert shown_address("http://[::1") == "an invalid address"
    assert all("models.test" in found.detail and "hidden" not in found.detail for found in findings)


PROVIDERS = {"OPENAI_API_KEY": SecretStr("sk-any"), "ANTHROPIC_API_KEY": SecretStr("sk-any")}
TRACING = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.test:4318",
    "LANGFUSE_PUBLIC_KEY": "pk",
    "LANGFUSE_SECRET_KEY": SecretStr("sk"),
    "LANGFUSE_HOST": "http://langfuse.test",
}


@pytest.mark.requirement("G2")
@pytest.mark.parametrize(
    ("answer", "of_providers", "of_tracing"),
    [
        (answering(200), OK, OK),
        (answering(401), PROBLEM, WARNING),
        (answering(404), OK, WARNING),
        (answering(503), WARNING, WARNING),
        (unreachable, PROBLEM, WARNING),
    ],
    ids=["well", "credentials refused", "somewhere else", "out of order", "unreachable"],
)
async def test_providers_and_tracing_backends_are_asked(
    answer: Callable[[httpx.Request], httpx.Response], of_providers: State, of_tracing: State
) -> None:
    assert await reached(answer, **PROVIDERS, **TRACING) == {
        "model provider openai": of_providers,
        "model provider anthropic": of_providers,
        "tracing (OpenTelemetry)": of_tracing,
        "tracing (Langfuse)": of_tracing,
    }


@pytest.mark.requirement("G2")
async def test_each_is_asked_as_its_clients_ask_it() -> None:
    asked: dict[str, httpx.Request] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        asked[str(request.url)] = request
        return httpx.Response(200)

    await reached(answer, **PROVIDERS, **TRACING, OPENAI_BASE_URL="http://models.test/v1")
    assert asked["http://models.test/v1/models"].headers["Authorization"] == "Bearer sk-any"
    assert asked["https://api.anthropic.com/v1/models"].headers["x-api-key"] == "sk-any"
    assert asked["http://collector.test:4318/v1/traces"].method == "POST"
    assert asked["http://langfuse.test/api/public/projects"].headers["Authorization"].startswith("Basic ")


async def test_nothing_is_asked_that_the_settings_do_not_name() -> None:
    assert await reached(unreachable) == {}


@pytest.mark.requirement("G2")
def test_a_short_secret_key_is_a_warning(tmp_path: Path) -> None:
    assert of_settings(tmp_path, secret_key=SecretStr("x" * 16))["secret key"] is WARNING
    assert of_settings(tmp_path, secret_key=SecretStr("x" * 40 + "," + "y" * 16))["secret key"] is WARNING
    assert of_settings(tmp_path, secret_key=SecretStr("x" * 40))["secret key"] is OK


@pytest.mark.requirement("K5", "G2")
def test_an_archive_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    assert of_settings(tmp_path, archive_dir=tmp_path)["archive"] is OK
    assert of_settings(tmp_path, archive_dir=tmp_path / "none")["archive"] is PROBLEM
    assert "archive" not in of_settings(tmp_path)


def test_a_backup_is_restored_only_over_a_file_that_is_damaged() -> None:
    for code, restores in (("SQLITE_NOTADB", True), ("SQLITE_CORRUPT", True), ("SQLITE_CANTOPEN", False)):
        (found,) = database_findings(Seen(name="/srv/dragoman.db", failure=f"It cannot be read ({code})."))
        assert ("Restore" in found.advice) is restores
        assert found.state is PROBLEM


@pytest.mark.requirement("G2", "B12")
def test_a_database_whose_key_is_gone_is_a_problem(tmp_path: Path) -> None:
    assert of_settings(tmp_path)["secret key"] is OK
    (tmp_path / "dragoman.db").touch()
    assert of_settings(tmp_path)["secret key"] is PROBLEM
    (tmp_path / "secret.key").touch()
    assert of_settings(tmp_path)["secret key"] is OK


@pytest.mark.requirement("G2", "B16")
@pytest.mark.parametrize(
    ("allowed", "state"),
    [
        ((), OK),
        (("10.1.0.0/16", "mcp.internal"), OK),
        (("169.254.0.0/16",), WARNING),
        (("0.0.0.0/0",), WARNING),
        (("::/0",), WARNING),
    ],
)
def test_egress_that_reaches_too_much_is_a_warning(allowed: tuple[str, ...], state: State) -> None:
    assert egress_finding(allowed).state is state


@pytest.mark.requirement("G2")
def test_a_service_that_others_reach_needs_a_public_address_and_a_token_for_its_metrics(tmp_path: Path) -> None:
    assert {"address", "metrics"}.isdisjoint(of_settings(tmp_path))
    bare = of_settings(tmp_path, host="10.0.0.5")
    assert (bare["address"], bare["metrics"]) == (WARNING, WARNING)
    plain = of_settings(tmp_path, host="10.0.0.5", public_url="http://dragoman.test", metrics_token=SecretStr("m" * 40))
    assert plain["address"] is WARNING
    assert "metrics" not in plain
    token = SecretStr("m" * 40)
    assert "address" not in of_settings(tmp_path, host="::", public_url="https://dragoman.test", metrics_token=token)


@pytest.mark.requirement("G2")
def test_a_port_that_is_taken_is_a_warning() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = port_finding("127.0.0.1", port)
    assert found is not None
    assert found.state is WARNING
    assert port_finding("127.0.0.1", 0) is None


@pytest.mark.requirement("G2")
@pytest.mark.parametrize(
    ("seen", "check", "state", "opened"),
    [
        (Seen(), "schema", OK, True),
        (Seen(is_there=False), "database", OK, True),
        (Seen(failure="It cannot be used."), "database", PROBLEM, False),
        (Seen(damage="row 1 missing from index"), "database", PROBLEM, True),
        (Seen(revision=None), "schema", WARNING, False),
        (Seen(revision="0027"), "schema", PROBLEM, False),
        (Seen(revision="0029", is_older=True), "schema", WARNING, False),
        (Seen(revision="0033", is_older=True), "schema", WARNING, False),
        (Seen(revision="0029"), "schema", PROBLEM, False),
        (Seen(revision="0031"), "schema", PROBLEM, False),
        (Seen(revision="0031", is_compatible=True), "schema", OK, True),
        (Seen(queue_is_current=False), "schema", WARNING, False),
        (Seen(clock_ahead_s=30.0), "clock", PROBLEM, True),
        (Seen(clock_ahead_s=-30.0), "clock", PROBLEM, True),
    ],
)
def test_what_is_wrong_with_a_database_is_said_and_it_is_opened_only_if_that_changes_nothing(
    seen: Seen, check: str, state: State, opened: bool
) -> None:
    assert states(list(database_findings(seen)))[check] is state
    assert can_be_opened(seen) is opened


@pytest.mark.requirement("K5", "G2")
def test_a_file_that_is_a_quarter_free_and_does_not_shrink_is_a_warning() -> None:
    for free, shrinks, expected in ((26, False, WARNING), (24, False, None), (90, True, None)):
        found = states(list(database_findings(Seen(space=FileSpace(size=100, free=free, shrinks=shrinks)))))
        assert found.get("space") is expected


def test_clocks_may_differ_a_little() -> None:
    assert clock_finding(1.0).state is OK
    assert clock_finding(-2.5).state is PROBLEM


async def siem_states(url: str, lag: str) -> dict[str, State]:
    def page(request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == "Bearer a-long-random-text"
        return httpx.Response(200, text=f"# HELP x\n{lag}\n")

    client = httpx.AsyncClient(transport=httpx.MockTransport(page))
    settings = Settings(siem_url=url, metrics_token=SecretStr("a-long-random-text"))
    return states(await siem_findings(settings, "http://service.test", client=client))


@pytest.mark.requirement("K8")
async def test_the_siem_is_reached_and_its_lag_read_from_the_service() -> None:
    with socket.create_server(("127.0.0.1", 0)) as siem:
        port = siem.getsockname()[1]
        for scheme in ("http", "syslog+tcp"):
            found = await siem_states(f"{scheme}://127.0.0.1:{port}", "dragoman_siem_lag_seconds 1.5")
            assert found == {"siem": OK, "siem lag": OK}
        late = await siem_states(f"syslog+udp://127.0.0.1:{port}", "dragoman_siem_lag_seconds 11.0")
        assert late == {"siem": OK, "siem lag": WARNING}
    away = f"syslog+tls://127.0.0.1:{port}"
    assert await siem_states(away, "") == {"siem": PROBLEM, "siem lag": WARNING}
    assert await siem_states(away, "dragoman_siem_lag_seconds 1.5") == {"siem": PROBLEM, "siem lag": WARNING}
    assert await siem_states(away, "dragoman_siem_lag_seconds 0.0") == {"siem": PROBLEM, "siem lag": OK}


@pytest.mark.requirement("K8")
async def test_entries_are_said_to_be_sent_only_where_the_siem_answers() -> None:
    def page(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="dragoman_siem_lag_seconds 0.0\n")

    with socket.create_server(("127.0.0.1", 0)) as siem:
        port = siem.getsockname()[1]
    client = httpx.AsyncClient(transport=httpx.MockTransport(page))
    _, lag = await siem_findings(Settings(siem_url=f"http://127.0.0.1:{port}"), "http://service.test", client=client)
    assert lag.detail == "no audit entry waits yet"


@pytest.mark.requirement("K8")
async def test_a_siem_that_takes_connections_is_not_said_to_have_what_waits() -> None:
    def page(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="dragoman_siem_lag_seconds 8.0\n")

    with socket.create_server(("127.0.0.1", 0)) as siem:
        url = f"http://127.0.0.1:{siem.getsockname()[1]}"
        client = httpx.AsyncClient(transport=httpx.MockTransport(page))
        reached, lag = await siem_findings(Settings(siem_url=url), "http://service.test", client=client)
    assert reached.detail == f"{url} takes connections"
    assert lag.detail == "the oldest audit entry has waited for 8 s; up to 10 s are usual"


async def test_nothing_is_said_of_a_siem_where_there_is_none() -> None:
    assert await siem_findings(Settings(), "http://service.test") == []


@pytest.mark.requirement("K8")
@pytest.mark.parametrize(
    ("answer", "of_vault"), [(answering(200), OK), (answering(503), PROBLEM), (unreachable, PROBLEM)]
)
async def test_vault_and_the_directory_of_secrets_are_checked_without_reading_a_secret(
    answer: Callable[[httpx.Request], httpx.Response], of_vault: State, tmp_path: Path
) -> None:
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    settings = Settings(vault_url="https://vault.test:8200", secret_files=tmp_path)
    assert states(await external_secret_findings(settings, client=client)) == {"secret files": OK, "vault": of_vault}
    missing = await external_secret_findings(Settings(secret_files=tmp_path / "missing"))
    assert states(missing) == {"secret files": PROBLEM}
    assert await external_secret_findings(Settings()) == []


@pytest.mark.requirement("K8")
@pytest.mark.parametrize("is_gone", [True, False])
async def test_certificates_of_vault_that_cannot_be_read_are_a_finding(is_gone: bool, tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("-----BEGIN CERTIFICATE-----\nnot one", encoding="ascii")
    settings = Settings(vault_url="https://vault.test", vault_ca_file=ca_file)
    if is_gone:
        ca_file.unlink()
    (finding,) = await external_secret_findings(settings)
    assert (finding.check, finding.state) == ("vault", PROBLEM)
    assert str(ca_file) in finding.detail
