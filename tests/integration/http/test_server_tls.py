"""`tls` of MCP servers over HTTP and in the console: what is taken, what is refused, what is
shown."""

from datetime import timedelta

import pytest

from tests.certificates import Issued, an_authority
from tests.integration.http.service import Service, paths_of, problem_of
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("P4")

REMOTE = {"slug": "tickets", "kind": "http", "url": "https://mcp.example.org/mcp"}
OURS = an_authority()


def issued(name: str) -> Issued:
    """Valid for long, because the clock of the service stands still."""
    return OURS.issue(name, begins=-timedelta(days=20_000), ends=timedelta(days=20_000))


ISSUED = issued("dragoman")
TLS = {"certificate": ISSUED.certificate, "private_key": ISSUED.private_key, "ca": OURS.pem}
SECRET_LINE = ISSUED.private_key.splitlines()[1]


async def test_a_certificate_is_shown_with_its_end_and_without_its_key(service: Service) -> None:
    made = await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "tls": TLS})
    assert made.status_code == 201, made.text
    shown = made.json()["tls"]
    assert shown.items() >= {"certificate": ISSUED.certificate, "private_key": "[hidden]", "ca": OURS.pem}.items()
    assert (shown["subject"], shown["expires_at"][-1]) == ("CN=dragoman", "Z")
    read = await service.call("GET", "/v1/mcp-servers/tickets")
    audit = await service.call("GET", "/v1/audit-events")
    assert read.json()["tls"] == shown
    assert SECRET_LINE not in made.text + read.text + audit.text


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"tls": {}}, ["tls"]),
        ({"tls": {"certificate": ISSUED.certificate}}, ["tls.private_key"]),
        ({"tls": {"private_key": ISSUED.private_key}}, ["tls", "tls.certificate"]),
        ({"tls": {**TLS, "private_key": "[hidden]"}}, ["tls.private_key"]),
        ({"tls": {**TLS, "private_key": issued("other").private_key}}, ["tls.private_key"]),
        (
            {"tls": {**TLS, "certificate": "-----BEGIN CERTIFICATE-----", "ca": "nothing"}},
            ["tls.ca", "tls.certificate"],
        ),
        ({"tls": TLS, "url": "http://mcp.example.org/mcp"}, ["tls"]),
        ({"tls": TLS, "kind": "custom", "command": "run", "url": None}, ["tls"]),
    ],
)
async def test_wrong_certificates_are_refused_with_their_paths(
    service: Service, changes: dict[str, object], paths: list[str]
) -> None:
    response = await service.call("POST", "/v1/mcp-servers", json={**REMOTE, **changes})
    assert paths_of(problem_of(response, 422, "mcp_server_invalid")) == paths
    assert SECRET_LINE not in response.text
    unsaved = {name: value for name, value in {**REMOTE, **changes}.items() if name != "slug"}
    tested = await service.call("POST", "/v1/mcp-servers/test", json=unsaved)
    assert paths_of(problem_of(tested, 422, "mcp_server_invalid")) == paths


async def test_tls_is_replaced_whole_or_taken_away_and_stays_otherwise(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "tls": TLS})
    kept = await service.call("PATCH", "/v1/mcp-servers/tickets", json={"timeout_s": 9})
    assert kept.json()["tls"]["subject"] == "CN=dragoman"
    changed = await service.call("PATCH", "/v1/mcp-servers/tickets", json={"tls": {"ca": OURS.pem}})
    assert changed.json()["tls"] == {
        "certificate": None,
        "private_key": None,
        "ca": OURS.pem,
        "subject": None,
        "expires_at": None,
    }
    gone = await service.call("PATCH", "/v1/mcp-servers/tickets", json={"tls": None})
    assert (gone.status_code, gone.json()["tls"]) == (200, None)


async def test_a_named_key_is_a_use_of_its_secret(service: Service) -> None:
    await service.call("POST", "/v1/secrets", json={"name": "TLS_KEY", "value": ISSUED.private_key})
    tls = {**TLS, "private_key": {"secret": "TLS_KEY"}}
    made = await service.call("POST", "/v1/mcp-servers", json={**REMOTE, "tls": tls})
    assert made.json()["tls"]["private_key"] == {"secret": "TLS_KEY"}
    problem_of(await service.call("DELETE", "/v1/secrets/TLS_KEY"), 409, "secret_in_use")


async def test_the_form_takes_certificates_keeps_the_key_and_the_page_says_when_they_expire(service: Service) -> None:
    admin = await signed_in(service)
    form = {"kind": "http", "slug": "tickets", "url": REMOTE["url"], "enabled": "on"}
    entered = {f"tls.{name}": text.replace("\n", "\r\n") for name, text in TLS.items()}
    answer = await browse(service, "POST", "/console/servers-new", headers=admin, data=form | entered)
    assert answer.status_code == 200, answer.text
    saved = (await service.call("GET", "/v1/mcp-servers/tickets")).json()
    assert saved["tls"]["subject"] == "CN=dragoman"

    page = await browse(service, "GET", "/console/servers/tickets/edit", headers=admin)
    assert "It expires at" in page.text
    assert SECRET_LINE not in page.text
    again = {**form, "revision": "1", "timeout_s": "9", **{f"tls.{name}": TLS[name] for name in ("certificate", "ca")}}
    answer = await browse(service, "POST", "/console/servers/tickets/edit", headers=admin, data=again)
    assert answer.status_code == 200, answer.text
    assert (await service.call("GET", "/v1/mcp-servers/tickets")).json()["tls"]["private_key"] == "[hidden]"
    shown = await browse(service, "GET", "/console/servers/tickets", headers=admin)
    assert "CN=dragoman" in shown.text

    bare = {**form, "revision": "2"}
    answer = await browse(service, "POST", "/console/servers/tickets/edit", headers=admin, data=bare)
    assert answer.status_code == 200, answer.text
    assert (await service.call("GET", "/v1/mcp-servers/tickets")).json()["tls"] is None
