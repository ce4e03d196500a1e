"""Front ends in Chromium as their users build them: bundled from `examples/`, behind a back end
that adds the API key."""

import os
import subprocess
from pathlib import Path

from playwright.sync_api import Browser, Page, Route

from tests.e2e.browser import WAIT_MS
from tests.e2e.service import ROOT
from tests.e2e.test_gateway_conformance import NODES

NODE_MODULES = ROOT / "tests" / "node" / "node_modules"
_PAGE = """<!doctype html><meta charset="utf-8"><title>Chat</title><link rel="icon" href="data:,">
<div id="chat"></div><script type="module" src="/app.js"></script>"""


def bundled(source: Path, folder: Path) -> str:
    """The program for a browser."""
    target = folder / "app.js"
    options = ["--bundle", "--format=esm", "--jsx=automatic", "--log-level=warning", f"--outfile={target}"]
    environment = {**os.environ, "NODE_PATH": str(NODE_MODULES)}
    esbuild = [NODES[-1], NODE_MODULES / "esbuild" / "bin" / "esbuild"]
    subprocess.run([*esbuild, source, *options], check=True, timeout=120, env=environment)
    return target.read_text(encoding="utf-8")


def opened(browser: Browser, url: str, *, program: str, key: str, path: str) -> Page:
    """The program's page on the service's own address. Requests below `path` get the key on their
    way."""

    def with_key(route: Route) -> None:
        route.continue_(headers={**route.request.headers, "authorization": f"Bearer {key}"})

    page = browser.new_context().new_page()
    page.set_default_timeout(WAIT_MS)
    page.route(f"{url}{path}**", with_key)
    page.route(f"{url}/", lambda route: route.fulfill(body=_PAGE, content_type="text/html"))
    page.route(f"{url}/app.js", lambda route: route.fulfill(body=program, content_type="text/javascript"))
    page.goto(f"{url}/")
    return page
