"""Clients that only know OAuth connect to the gateway, with a real identity provider, and no token
is pasted."""

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from playwright.sync_api import Browser, Request
from pydantic import AnyUrl

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.consent import People
from tests.e2e.front_door import TOOL, a_front_door
from tests.e2e.identity_provider import needs_identity_provider
from tests.e2e.oauth_client import RawClient, a_client, answer_of
from tests.e2e.processes import until
from tests.e2e.service import ROOT, Json
from tests.e2e.test_gateway import text_of
from tests.e2e.test_gateway_conformance import NODES

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("P5"), needs_identity_provider()]

CALLBACK = "http://127.0.0.1:33418/callback"
TYPESCRIPT = ROOT / "tests" / "node" / "gateway_oauth_client.mjs"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with a_front_door(tmp_path_factory.mktemp("front_door") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


class Memory(TokenStorage):
    """Where a client remembers its tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def a_python_client(url: str, people: People, memory: Memory, name: str = "ann") -> OAuthClientProvider:
    """The official client's authorization; the person allows it in a browser."""
    went_to: list[str] = []

    async def go(authorization_url: str) -> None:
        went_to.append(await asyncio.to_thread(people.redirected, authorization_url, name))

    async def came_back() -> AuthorizationCodeResult:
        answer = parse_qs(urlsplit(went_to[-1]).query)
        return AuthorizationCodeResult(code=answer["code"][0], state=answer["state"][0], iss=answer["iss"][0])

    metadata = OAuthClientMetadata(client_name="Python client", redirect_uris=[AnyUrl(CALLBACK)])
    return OAuthClientProvider(
        server_url=url, client_metadata=metadata, storage=memory, redirect_handler=go, callback_handler=came_back
    )


async def looked(url: str, authorization: OAuthClientProvider) -> str:
    """What the tool of the agent says to a client."""
    async with (
        httpx2.AsyncClient(auth=authorization, timeout=60.0, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        return text_of(await client.call_tool(TOOL, {"text": "OAuth"}))


async def test_the_python_client_connects_and_renews_its_token_without_the_person(people: People) -> None:
    url = f"{people.service.url}/mcp?agent=reader"
    memory = Memory()
    assert await looked(url, a_python_client(url, people, memory)) == "look says OAuth"
    first = memory.tokens
    assert first is not None
    memory.tokens = first.model_copy(update={"access_token": "dgs_expired", "expires_in": -1})
    assert await looked(url, a_python_client(url, people, memory)) == "look says OAuth"
    assert memory.tokens.refresh_token != first.refresh_token

    session = people.service.call("GET", "/gateway-sessions")["data"][0]
    user = next(each for each in people.service.call("GET", "/users")["data"] if each["subject"] == "ann")
    assert (session["created_by"], session["client_name"]) == (user["id"], "Python client")
    calls = people.service.call("GET", "/audit-events?action=tool.executed")["data"]
    assert {entry["actor"] for entry in calls} == {user["id"]}


@pytest.mark.skipif(
    not (NODES and (TYPESCRIPT.parent / "node_modules" / "@modelcontextprotocol" / "client").exists()),
    reason="needs `make node peers`",
)
def test_the_typescript_client_connects_and_renews_its_token_without_the_person(people: People) -> None:
    url = f"{people.service.url}/mcp?agent=reader"
    command = [str(NODES[-1]), str(TYPESCRIPT), url, TOOL, json.dumps({"text": "TypeScript"})]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        asked = process.stdout.readline().strip()
        assert asked.startswith(f"{people.service.url}/console/authorize?"), asked
        said, complaints = process.communicate(people.redirected(asked) + "\n", timeout=120)
    assert process.returncode == 0, complaints
    text = "look says TypeScript"
    assert json.loads(said.splitlines()[-1]) == {"text": text, "again": text, "refreshed": True}


@needs_browser()
def test_a_person_reads_who_asks_for_what_chooses_an_agent_and_allows_it(chromium: Browser, people: People) -> None:
    client = a_client(people.service, name="Editor of ann")
    ann = Person(chromium, people.service.url)
    went_to: list[str] = []

    def back(request: Request) -> None:
        if request.url.startswith(client.redirect_uri):
            went_to.append(request.url)

    ann.page.on("request", back)
    ann.page.goto(client.url(resource=f"{people.service.url}/mcp"))
    ann.page.get_by_role("button", name="Sign in with company").click()
    ann.page.get_by_label("Name").fill("ann")
    ann.page.get_by_role("button", name="Continue").click()
    ann.page.get_by_role("heading", name="Allow Editor of ann?").wait_for()
    ann.page.get_by_role("link", name="reader").click()
    page = ann.page.get_by_role("main")
    page.get_by_text(TOOL).wait_for()
    for shown in (
        "Editor of ann (not verified)",
        "127.0.0.1 (a program on your computer)",
        "ann@example.com",
        "reader",
    ):
        page.get_by_text(shown).first.wait_for()
    ann.page.wait_for_load_state()
    allow = page.get_by_role("button", name="Allow")
    # As when a window in front of the page is closed between the clicks of a double click.
    assert allow.evaluate("(button) => { window.dispatchEvent(new Event('focus')); return button.disabled; }")

    def allowed() -> bool:
        """A click that brings the page to the front presses nothing, and is repeated."""
        if not went_to and allow.count() and allow.is_enabled():
            allow.click()
        ann.page.wait_for_timeout(200)
        return bool(went_to)

    until(allowed, what="the browser goes back to the client")
    code = parse_qs(urlsplit(went_to[0]).query)["code"][0]
    ann.page.context.close()
    answer = client.redeem(code, resource=f"{people.service.url}/mcp")
    assert answer.is_success, answer.text
    assert client.ping(answer.json()["access_token"], "") == httpx2.codes.OK


@contextmanager
def published(document: Json) -> Iterator[str]:
    """The URL of a client's metadata document, which has it as `client_id`."""

    class Publisher(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"client_id": url, **document}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Not into the output of tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Publisher) as server:
        url = f"http://127.0.0.1:{server.server_port}/client.json"
        serving_it = threading.Thread(target=server.serve_forever)
        serving_it.start()
        try:
            yield url
        finally:
            server.shutdown()
            serving_it.join()


def test_a_client_is_known_by_its_metadata_document_and_shown_with_its_host(people: People) -> None:
    document = {"client_name": "Published", "redirect_uris": ["http://127.0.0.1/callback"]}
    with published(document) as url, httpx.Client(trust_env=False, timeout=60.0) as browser:
        client = RawClient(service=people.service, client_id=url)
        page = people.consent(browser, client.url())
        assert "The program <strong>Published</strong> of <strong>127.0.0.1</strong>" in page.text
        code = answer_of(page.redirected())["code"]
    tokens = client.redeem(code).raise_for_status().json()
    assert client.ping(tokens["access_token"]) == httpx.codes.OK
    assert client.refresh(tokens["refresh_token"]).is_success, "although its document is away"


def test_a_client_that_opens_a_window_hears_from_it_when_it_comes_back(people: People) -> None:
    client = a_client(people.service)
    opener = "cross-origin-opener-policy"
    with httpx.Client(trust_env=False, timeout=60.0) as browser:
        on_the_way = browser.get(client.url())
        sign_in = browser.get(f"{people.service.url}{on_the_way.headers['location']}")
        consent = people.signed_in(browser, client.url(), "ann")
        console = browser.get(f"{people.service.url}/console/runs")
    assert [page.headers[opener] for page in (sign_in, consent, console)] == [
        "unsafe-none",
        "unsafe-none",
        "same-origin",
    ]
    assert "frame-ancestors 'none'" in consent.headers["content-security-policy"]


def test_a_client_goes_on_in_its_session_of_mcp_with_the_renewed_token(people: People) -> None:
    client = a_client(people.service)
    code = answer_of(people.redirected(client.url()))["code"]
    first = client.redeem(code).raise_for_status().json()
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    began = client.ask(first["access_token"], "initialize", hello)
    session = {"Mcp-Session-Id": began.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    second = client.refresh(first["refresh_token"]).raise_for_status().json()
    listed = client.ask(second["access_token"], "tools/list", {}, **session)
    assert TOOL in [tool["name"] for tool in listed.json()["result"]["tools"]]
    assert client.ask(first["access_token"], "tools/list", {}, **session).status_code == httpx.codes.UNAUTHORIZED
