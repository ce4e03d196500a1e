"""MCP Apps behind the gateway: the published example servers, rendered by the official host side in
Chromium.

The host is `tests/node/app_host.mjs`. Its apps are on another origin, in a frame with the
restrictive policy of the specification.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from tests.e2e.browser import browsing, needs_browser
from tests.e2e.front_ends import NODE_MODULES, bundled, opened
from tests.e2e.service import ROOT, Json, Service, a_turn, results_by_tool, serving
from tests.e2e.test_gateway_conformance import NODES
from tests.integration.extraction.pdf_files import pdf

EXAMPLES = NODE_MODULES / "@modelcontextprotocol"
pytestmark = [
    pytest.mark.requirement("X6"),
    pytest.mark.timeout(240),
    needs_browser(),
    pytest.mark.skipif(not (NODES and (EXAMPLES / "ext-apps").exists()), reason="needs `make node peers`"),
]
BASIC = ("basic-preact", "basic-react", "basic-solid", "basic-svelte", "basic-vanillajs", "basic-vue")
SHOWN: dict[str, tuple[str, str]] = {
    "budget-allocator": ("get-budget-data", "text=R&D"),
    "scenario-modeler": ("get-scenario-data", "text=End MRR"),
    "shadertoy": ("render-shadertoy", "canvas"),
    "sheet-music": ("play-sheet-music", "svg"),
    "transcript": ("transcribe", "text=Your speech will appear here"),
}
"""Apps that compute, draw, play or record by themselves: nothing in their pages calls a tool or
reads a resource."""
CALLS_BACK = (".callServerTool(", ".readServerResource(")
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " media-src 'self' data:; object-src 'none'; connect-src 'none'"
)
CORS = {"access-control-allow-origin": "*"}
FONTS = "https://unpkg.com"
LAX = POLICY.replace("script-src 'self'", "script-src 'self' data: blob:").replace(
    "connect-src 'none'", f"connect-src {FONTS}"
)
"""For an app that loads its program as data, and fonts from the domain that its resource
declares."""
SANDBOX = """<!doctype html><meta charset="utf-8"><style>iframe { width: 800px; height: 600px }</style><script>
let view;
addEventListener("message", ({ data, source }) => {
  if (source !== parent) return source === view?.contentWindow && parent.postMessage(data, "*");
  if (data.method !== "ui/notifications/sandbox-resource-ready") return view?.contentWindow.postMessage(data, "*");
  view = document.createElement("iframe");
  view.sandbox = "allow-scripts allow-same-origin";
  view.srcdoc = data.params.html;
  document.body.append(view);
});
parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-proxy-ready", params: {} }, "*");
</script>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("apps") / "home") as found:
        yield found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bundled(ROOT / "tests" / "node" / "app_host.mjs", tmp_path_factory.mktemp("bundle"))


class Host:
    """The page of a host that is connected to a session of an agent with these example servers."""

    def __init__(
        self,
        browser: Browser,
        service: Service,
        program: str,
        *servers: str,
        mode: str = "auto",
        names: str = "namespaced",
        policy: str = POLICY,
    ) -> None:
        known = {server["slug"] for server in service.call("GET", "/mcp-servers")["data"]}
        for name in servers:
            if name not in known:
                register(service, name)
        self.name = "-".join((mode, *servers))
        service.agent(self.name, service.script("host", a_turn("Hello.")), mcp_servers=[*servers])
        session = service.call("POST", "/gateway-sessions", {"agent_id": self.name, "names": names})
        self.names = names
        self.session_id = session["id"]
        self.page: Page = opened(browser, service.url, program=program, key=session["token"], path="/mcp")
        headers = {"content-security-policy": policy}
        self.page.route(
            "http://sandbox.test/", lambda route: route.fulfill(body=SANDBOX, content_type="text/html", headers=headers)
        )
        self.page.evaluate("mode => { window.negotiation = mode }", mode)
        self.page.wait_for_function("window.host")

    def open(self, server: str, tool: str, **arguments: object) -> tuple[Json, Frame]:
        """The call of a tool, and the frame in which its app renders the result."""
        name = tool if self.names == "original" else f"mcp__{server}__{tool}"
        opened: Json = self.page.evaluate("([name, args]) => host.open(name, args)", [name, arguments])
        sandbox = self.page.frame(name=name)
        assert sandbox is not None
        (view,) = sandbox.child_frames
        return opened, view

    def ask(self, expression: str) -> Any:
        return self.page.evaluate(expression)


def register(service: Service, name: str, *arguments: str, before: tuple[str, ...] = (), **settings: object) -> None:
    """The published server; `before` are arguments of Node.js."""
    start = str(EXAMPLES / f"server-{name}" / "dist" / "index.js")
    service.server(name, str(NODES[-1]), *before, start, "--stdio", *arguments, trusted=True, **settings)


OFFLINE = ("--import", str(ROOT / "tests" / "node" / "offline.mjs"))


def calls_of_apps(service: Service, host: Host, tool: str) -> int:
    entries = service.call("GET", f"/audit-events?tool={tool}")["data"]
    of_session = [entry["details"] for entry in entries if entry["details"]["gateway_session_id"] == host.session_id]
    return [details.get("origin") for details in of_session].count("app")


@pytest.mark.parametrize("name", BASIC)
def test_a_basic_app_renders_and_calls_its_server_back(
    browser: Browser, service: Service, program: str, name: str
) -> None:
    host = Host(browser, service, program, name)
    shown, view = host.open(name, "get-time")
    uri = f"ui://{name}/get-time/mcp-app.html"
    assert (shown["uri"], shown["read"], shown["type"]) == (uri, uri, "text/html;profile=mcp-app")
    expect(view.locator("code")).to_contain_text("Z")
    with host.page.expect_response("**/mcp") as answered:
        view.get_by_role("button", name="Get Server Time").click()
    expect(view.locator("code")).to_contain_text(answered.value.json()["result"]["content"][0]["text"])
    assert calls_of_apps(service, host, f"mcp__{name}__get-time") == 1
    host.page.context.close()


def page_of(server: str) -> str:
    return (EXAMPLES / f"server-{server}" / "dist" / "mcp-app.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHOWN)
def test_other_apps_call_nothing_back_and_render_the_results_of_their_tools(
    browser: Browser, service: Service, program: str, name: str
) -> None:
    assert not any(call in page_of(name) for call in CALLS_BACK)
    assert any(call in page_of("basic-react") for call in CALLS_BACK)
    tool, shown = SHOWN[name]
    host = Host(browser, service, program, name)
    arguments = {"abcNotation": "X:1\nK:C\nC D E F|"} if name == "sheet-music" else {}
    assert not host.open(name, tool, **arguments)[0]["isError"]
    expect(host.page.frame_locator("iframe").frame_locator("iframe").locator(shown).first).to_be_attached()
    host.page.context.close()


def test_an_app_reads_its_own_data_from_its_server(browser: Browser, service: Service, program: str) -> None:
    host = Host(browser, service, program, "customer-segmentation")
    _, view = host.open("customer-segmentation", "get-customer-data")
    expect(view.locator("text=Enterprise").first).to_be_attached()
    assert calls_of_apps(service, host, "mcp__customer-segmentation__get-customer-data") == 1
    host.page.context.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_what_a_person_chooses_in_an_app_is_asked_of_the_server(
    browser: Browser, service: Service, program: str, mode: str
) -> None:
    host = Host(browser, service, program, "cohort-heatmap", mode=mode)
    _, view = host.open("cohort-heatmap", "get-cohort-data")
    table = view.locator("body")
    expect(table).to_contain_text("M11")
    drawn = table.inner_text()  # from random numbers
    view.get_by_label("Metric").select_option(label="Active Users")
    expect(table).not_to_have_text(drawn, use_inner_text=True)
    assert calls_of_apps(service, host, "mcp__cohort-heatmap__get-cohort-data") >= 1
    host.page.context.close()


def test_a_tool_for_the_app_only_is_called_by_it_and_hidden_from_models(
    browser: Browser, service: Service, program: str
) -> None:
    poll, info = "mcp__system-monitor__poll-system-stats", "mcp__system-monitor__get-system-info"
    host = Host(browser, service, program, "system-monitor")
    assert host.ask("host.forModels") == [info]
    assert "io.modelcontextprotocol/ui" in host.ask("host.extensions")
    _, view = host.open("system-monitor", "get-system-info")
    expect(view.locator("#memory-detail")).to_contain_text("GB")
    assert calls_of_apps(service, host, poll) >= 1
    host.page.context.close()
    model = service.script("guessing", a_turn("Looking.", (poll, {})), a_turn("Done."))
    service.agent("guessing", model, mcp_servers=["system-monitor"])
    refusal = results_by_tool(service.run("guessing")["messages"])[poll]
    assert refusal["is_error"]
    assert "was not found" in refusal["result"]


def test_apps_with_the_same_address_and_the_same_tools_do_not_meet(
    browser: Browser, service: Service, program: str
) -> None:
    names = ("basic-react", "basic-vue")
    host = Host(browser, service, program, *names)
    for name in names:
        shown, view = host.open(name, "get-time")
        assert shown["uri"] == f"ui://{name}/get-time/mcp-app.html"
        expect(view.locator("code")).to_contain_text("Z")
        read = host.ask(
            f"host.client.readResource({{ uri: '{shown['uri']}' }}).then(({{ contents }}) => contents[0].text)"
        )
        assert read == page_of(name)
    refused = host.ask("host.client.callTool({ name: 'get-time' }).catch(error => error.message)")
    assert "mcp__basic-react__get-time, mcp__basic-vue__get-time" in refused
    host.page.context.close()


def test_an_app_asks_its_server_for_another_page_of_the_web(browser: Browser, service: Service, program: str) -> None:
    register(service, "wiki-explorer", before=OFFLINE)
    host = Host(browser, service, program, "wiki-explorer")
    opened, view = host.open("wiki-explorer", "get-first-degree-links", url="https://en.wikipedia.org/wiki/Protocol")
    assert not opened["isError"]
    expect(view.locator("canvas")).to_be_attached()
    with host.page.expect_response("**/mcp") as answered:
        view.locator("#reset-graph").dispatch_event("click")
    links = answered.value.json()["result"]["structuredContent"]["links"]
    assert [link["title"] for link in links] == ["Protocol 1", "Protocol 2"]
    assert calls_of_apps(service, host, "mcp__wiki-explorer__get-first-degree-links") == 1
    host.page.context.close()


def test_an_app_plays_a_resource_of_its_server(browser: Browser, service: Service, program: str) -> None:
    register(service, "video-resource", before=OFFLINE)
    host = Host(browser, service, program, "video-resource", names="original")
    assert not host.open("video-resource", "play_video")[0]["isError"]
    video = host.page.frame_locator("iframe").frame_locator("iframe").locator("video")
    expect(video).to_have_attribute("src", re.compile("^blob:"))
    host.page.context.close()


def test_an_app_draws_a_scene_with_libraries_of_its_own(browser: Browser, service: Service, program: str) -> None:
    host = Host(browser, service, program, "threejs")
    assert not host.open("threejs", "show_threejs_scene")[0]["isError"]
    view = host.page.frame_locator("iframe").frame_locator("iframe")
    expect(view.locator("canvas").first).to_be_attached()
    host.page.context.close()


def test_an_app_reads_a_document_piece_by_piece_from_its_server(
    browser: Browser, service: Service, program: str, tmp_path: Path
) -> None:
    document = tmp_path / "paper.pdf"
    document.write_bytes(pdf("What the paper says."))
    register(service, "pdf", str(document), max_response_bytes=8 * 1024 * 1024)  # its page has 4.3 MB
    host = Host(browser, service, program, "pdf", policy=LAX)
    fonts = NODE_MODULES / "pdfjs-dist" / "standard_fonts"
    host.page.route(
        f"{FONTS}/**", lambda route: route.fulfill(path=fonts / route.request.url.rpartition("/")[2], headers=CORS)
    )
    opened, view = host.open("pdf", "display_pdf", url=document.as_uri())
    assert not opened["isError"]
    expect(view.locator(".textLayer, #text-layer").first).to_contain_text("What the paper says.")
    assert calls_of_apps(service, host, "mcp__pdf__read_pdf_bytes") >= 1
    host.page.context.close()
