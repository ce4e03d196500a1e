"""Adding and operating MCP servers in a real browser: real packages, real processes, real pages."""

import io
import json
import sys
import tarfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, serving
from tests.e2e.test_secrets_and_authorization import oauth_outside
from tests.integration.mcp.install.packages import wheel
from tests.integration.mcp.install.uv import path_with_uv
from tests.integration.mcp.parts import SERVERS

pytestmark = [pytest.mark.timeout(300), needs_browser()]

INSTALL_MS = 120_000
"""Making an environment is most of an installation."""
PLAIN = str(SERVERS / "plain_server.py")
HELD = """
import pathlib, shutil, time
def build_wheel(folder, config_settings=None, metadata_directory=None):
    while not pathlib.Path({gate!r}).exists():
        time.sleep(0.02)
    return pathlib.Path(shutil.copy("tiny_server-1.2.3-py3-none-any.whl", folder)).name
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("servers")
    with serving(folder / "home", PATH=path_with_uv(folder)) as running:
        running.call("POST", "/secrets", {"name": "TOKEN", "value": "s3cret"})
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    # A refused form is an answer of its own, of which Chromium tells beside the page.
    assert [told for told in somebody.complaints if "status of 422" not in told] == []
    somebody.page.context.close()


def held_package(folder: Path) -> tuple[Path, Path]:
    """A package that is built once the second file is there."""
    gate = folder / "gate"
    files = {
        "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "held"\nbackend-path = ["."]\n'
        b'[project]\nname = "tiny-server"\nversion = "1.2.3"\n',
        "held.py": HELD.format(gate=str(gate)).encode(),
        "PKG-INFO": b"Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.2.3\n",
        "tiny_server-1.2.3-py3-none-any.whl": wheel(folder).read_bytes(),
    }
    package = folder / "tiny_server-1.2.3.tar.gz"
    with tarfile.open(package, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"tiny_server-1.2.3/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return package, gate


@pytest.mark.requirement("B2")
def test_a_package_is_added_installed_under_a_progress_bar_connected_and_removed(
    person: Person, tmp_path: Path
) -> None:
    package, gate = held_package(tmp_path)
    page = person.page
    page.get_by_role("link", name="MCP servers").click()
    page.get_by_role("link", name="Add an MCP server").click()
    page.get_by_role("link", name="Python package").click()
    page.get_by_label("Name", exact=True).first.fill("tiny")
    page.get_by_label("Package", exact=True).fill(str(package))
    page.get_by_role("button", name="Add the server").click()
    page.get_by_role("heading", name="MCP server tiny").wait_for()
    page.get_by_role("button", name="Install", exact=True).click()

    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.locator("#install-step")).to_contain_text("%")
    assert page.get_by_role("progressbar").get_attribute("value") is not None
    gate.touch()
    expect(page.get_by_text("Installed: 1.2.3")).to_be_visible(timeout=INSTALL_MS)
    expect(page.get_by_role("progressbar")).to_have_count(0)

    page.get_by_role("button", name="Connect and list the tools").click()
    expect(page.get_by_role("cell", name="echo", exact=True)).to_be_visible()
    page.get_by_text("Installed: 1.2.3").click()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Uninstall").click()
    expect(page.get_by_role("button", name="Install", exact=True)).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("heading", name="MCP servers").wait_for()
    expect(page.get_by_role("link", name="tiny")).to_have_count(0)


@pytest.mark.requirement("B2")
def test_an_installation_that_fails_says_why_with_what_was_printed(
    person: Person, service: Service, tmp_path: Path
) -> None:
    broken = tmp_path / "broken_server-1.0.0-py3-none-any.whl"
    broken.write_bytes(b"not a wheel")
    service.call("POST", "/mcp-servers", {"slug": "broken", "kind": "python", "package": str(broken)})
    person.go("/console/servers/broken")
    person.page.get_by_role("button", name="Install", exact=True).click()
    expect(person.page.locator(".problem")).to_be_visible(timeout=INSTALL_MS)
    expect(person.page.get_by_label("Output of the installation")).not_to_be_empty()
    expect(person.page.get_by_role("button", name="Install", exact=True)).to_be_visible()


@pytest.mark.requirement("B12")
def test_a_command_is_tried_out_before_it_is_saved_and_what_is_wrong_is_told_at_its_field(
    person: Person, service: Service
) -> None:
    page = person.page
    person.go("/console/servers-new?kind=custom")
    slug, timeout = page.locator("#slug"), page.locator("#timeout_s")
    slug.fill("Plain")
    page.get_by_label("Command").fill(sys.executable)
    page.get_by_label("Arguments").fill(f"-I\n-S\n{PLAIN}")
    page.locator("#env-0-name").fill("TOKEN")
    page.locator("#env-0-value\\.secret").select_option("TOKEN")
    page.get_by_role("button", name="Add another").click()
    page.locator("#env-2-name").fill("OTHER")
    page.locator("#env-2-value").fill("v4lue")
    page.get_by_text("Trust, connections and limits").click()
    timeout.fill("soon")
    page.get_by_role("button", name="Add the server").click()
    expect(timeout).to_have_attribute("aria-invalid", "true")
    expect(timeout).to_be_focused()
    timeout.fill("20")
    page.get_by_role("button", name="Add the server").click()
    expect(slug).to_have_attribute("aria-invalid", "true")
    expect(timeout).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator("#env-2-value")).to_have_value("v4lue")  # nothing that was entered is lost
    slug.fill("plain")
    page.get_by_role("button", name="Test before saving").click()
    expect(page.locator("#form-tested")).to_contain_text("6 tools")
    page.get_by_role("button", name="Add the server").click()
    page.get_by_role("heading", name="MCP server plain").wait_for()
    stored = service.call("GET", "/mcp-servers/plain")
    assert stored["env"] == {"TOKEN": {"secret": "TOKEN"}, "OTHER": "[hidden]"}

    page.get_by_role("link", name="Edit").click()
    expect(page.locator("#env-1-value")).to_have_value("")
    page.get_by_label("Remove TOKEN").check()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="MCP server plain").wait_for()
    assert service.call("GET", "/mcp-servers/plain")["env"] == {"OTHER": "[hidden]"}
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("button", name="Enable")).to_be_visible()


@pytest.mark.requirement("B12")
def test_the_fields_of_a_remote_server_follow_how_dragoman_is_to_be_known_there(person: Person) -> None:
    page = person.page
    person.go("/console/servers-new?kind=http")
    expect(page.get_by_label("Client id")).to_have_count(0)
    page.get_by_label("Kind", exact=True).select_option("oauth_client_credentials")
    expect(page.get_by_label("Client id")).to_be_visible()
    page.get_by_label("Kind", exact=True).select_option("bearer")
    expect(page.get_by_label("Token", exact=True)).to_be_visible()
    expect(page.get_by_label("Client id")).to_have_count(0)


@pytest.mark.requirement("B1")
def test_a_file_is_chosen_looked_at_and_imported(person: Person, service: Service, tmp_path: Path) -> None:
    entries = {"Plain Two": {"command": sys.executable, "args": [PLAIN], "env": {"KEY": "v4lue"}}, "bad": {}}
    file = tmp_path / "clients.json"
    file.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    page = person.page
    person.go("/console/servers-import")
    page.get_by_label("Or text").fill("{")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_label("Or text")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("File").set_input_files(file)
    expect(page.get_by_label("Or text")).to_have_value(file.read_text(encoding="utf-8"))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview")).to_contain_text("env.KEY")
    page.get_by_role("button", name="Create 1 server").click()
    page.get_by_role("link", name="plain-two").click()
    page.get_by_role("heading", name="MCP server plain-two").wait_for()
    assert service.call("GET", "/mcp-servers/plain-two")["env"] == {"KEY": "[hidden]"}


@pytest.mark.requirement("B12")
def test_a_person_authorizes_dragoman_in_a_window_of_their_own_and_the_page_goes_on(
    person: Person, service: Service
) -> None:
    page = person.page
    with oauth_outside() as world:

        def asks(route: Route) -> None:
            back = urlencode(world.authorization.authorize(route.request.url))
            link = f'<a href="{service.url}/oauth/callback?{escape(back)}">Agree</a>'
            route.fulfill(body=f"<!doctype html><title>Agree?</title>{link}", content_type="text/html")

        page.context.route(f"{world.authorization.url}/authorize**", asks)
        person.go("/console/servers-new?kind=http")
        page.locator("#slug").fill("outside")
        page.locator("#url").fill(world.protected.url)
        page.get_by_label("Kind", exact=True).select_option("oauth_authorization_code")
        page.get_by_label("Client id").wait_for()
        page.get_by_role("button", name="Add the server").click()
        page.get_by_role("button", name="Connect and list the tools").click()
        expect(page.locator(".status.needs_auth")).to_be_visible()
        page.get_by_role("button", name="Authorize").click()
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="Authorize at the authorization server").click()
        opened.value.get_by_role("link", name="Agree").click()
        expect(opened.value.get_by_role("heading", name="Authorized")).to_be_visible()
        expect(page.locator(".status.needs_auth")).to_have_count(0)
        page.get_by_role("button", name="Connect and list the tools").click()
        expect(page.get_by_role("cell", name="whoami", exact=True)).to_be_visible()


@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
def test_an_installation_and_filled_forms_can_be_read_in_both_themes_and_on_a_phone(
    browser: Browser, service: Service, tmp_path: Path
) -> None:
    package, gate = held_package(tmp_path)
    service.call("POST", "/mcp-servers", {"slug": "held", "kind": "python", "package": str(package)})
    service.call("POST", "/mcp-servers/held/install")
    for width, dark in ((1280, False), (1280, True), (390, False)):
        person = Person(browser, service.url, width=width, dark=dark)
        person.sign_in(service.key)
        page = person.page
        person.go("/console/servers/held")
        page.get_by_role("progressbar").wait_for()
        assert person.violations() == []
        person.go("/console/servers-new?kind=http")
        page.get_by_label("Kind", exact=True).select_option("oauth_authorization_code")
        page.get_by_label("Client id").wait_for()
        assert person.violations() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        person.go("/console/servers-import")
        page.get_by_label("Or text").fill('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')
        page.get_by_role("button", name="Preview").click()
        page.get_by_role("region", name="Preview").wait_for()
        assert person.violations() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert person.complaints == []
        page.context.close()
    gate.touch()
