"""What the official conformance suite runs as the client under test: it has a running service
connect to the suite's server.

    conformance_client.py HOME URL

The service's MCP client does everything that the suite looks at. This program (standard library
only) does what people do: it registers the server, agrees to what the authorization server asks,
has an agent call the tools, and fills in forms.
"""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT: Json = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
AUTHORIZATIONS = 2
"""How often a person agrees at most to the same thing before they give up."""
SAMPLES = {"string": "text", "number": 2, "integer": 2, "boolean": True}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)


class Service:
    """The running service, as an admin."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = json.loads((home / "serve.json").read_text(encoding="utf-8"))["url"]
        self._key = (home / "admin.key").read_text(encoding="utf-8").strip()

    def call(self, method: str, path: str, body: object = None, token: str | None = None) -> Json:
        """The answer's JSON, whatever its status is."""
        request = urllib.request.Request(f"{self.url}{path}", method=method)
        request.add_header("Authorization", f"Bearer {token or self._key}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        status, text, _ = fetched(request)
        if status >= 400:
            sys.stderr.write(f"{method} {path}: {status} {text}\n")
        return dict(json.loads(text or "{}"))


def fetched(request: urllib.request.Request) -> tuple[int, str, str]:
    """Status, body, and where the answer leads."""
    try:
        with OPENER.open(request, timeout=80) as response:
            return response.status, response.read().decode(), ""
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode(), answer.headers.get("location", "")


def register(service: Service, slug: str, url: str) -> None:
    """Save the server; with OAuth where the scenario is about it."""
    body: Json = {"slug": slug, "kind": "http", "url": url, "trusted": True, "elicitation": "ask"}
    if SCENARIO.startswith("auth/client-credentials"):
        body["auth"] = {"type": "oauth_client_credentials"} | credentials()
    elif SCENARIO.startswith("auth/"):
        body["auth"] = {"type": "oauth_authorization_code"} | credentials()
    service.call("POST", "/v1/mcp-servers", body)


def credentials() -> Json:
    """Those of a client that was registered by hand."""
    known = {"client_id": "client_id", "client_secret": "client_secret", "private_key_pem": "private_key"}
    return {ours: CONTEXT[theirs] for theirs, ours in known.items() if theirs in CONTEXT}


def authorize(service: Service, slug: str) -> bool:
    """Agree to what the authorization server asks, in a browser so to speak; whether the service
    took it."""
    begun = service.call("POST", f"/v1/mcp-servers/{slug}/authorize")
    if "authorization_url" not in begun:
        return False
    _, _, leads_to = fetched(urllib.request.Request(begun["authorization_url"]))
    answer = urllib.parse.urlsplit(leads_to)
    status, text, _ = fetched(urllib.request.Request(f"{service.url}{answer.path}?{answer.query}"))
    sys.stderr.write(f"callback: {status} {text[:300]}\n")
    return status < 400


def settle(service: Service, slug: str) -> bool:
    """Connect, with somebody's agreement where the server wants it; whether the service is
    connected."""
    for _ in range(AUTHORIZATIONS):
        service.call("POST", f"/v1/mcp-servers/{slug}/connect")
        status = service.call("GET", f"/v1/mcp-servers/{slug}/status")
        if status["state"] != "needs_auth":
            sys.stderr.write(f"status: {status}\n")
            return str(status["state"]) == "connected"
        if not authorize(service, slug):
            return False
    return False


def calls(service: Service, slug: str) -> list[Json]:
    """What an agent calls: what the scenario says, else every tool there is."""
    listed = service.call("GET", f"/v1/mcp-servers/{slug}/tools").get("data", [])
    sys.stderr.write(f"tools: {[tool['name'] for tool in listed]}\n")
    wanted = CONTEXT.get("toolCalls")
    if wanted is None:
        wanted = [{"name": tool["name"], "arguments": arguments(tool, listed)} for tool in listed]
    return [{"tool": f"mcp__{slug}__{one['name']}", "arguments": one["arguments"]} for one in wanted]


def arguments(tool: Json, listed: list[Json]) -> Json:
    """Something for each parameter that is required; for one of which the suite wants to see a
    schema, that."""
    schema = tool["parameters"]
    shown: Json = next((other["parameters"] for other in listed if "2020_12" in other["name"]), {})
    required = {name: schema["properties"].get(name, {}).get("type") for name in schema.get("required", ())}
    return {name: SAMPLES.get(kind, shown) for name, kind in required.items()}


def run(service: Service, slug: str) -> None:
    """An agent calls the tools one after the other, and is authorized again where a server wants
    more rights."""
    turns = [{"text": "", "calls": [call]} for call in calls(service, slug)]
    script = {"turns": [*turns, {"text": "Done.", "calls": []}]}
    (service.home / "scripted").mkdir(exist_ok=True)
    (service.home / "scripted" / f"{slug}.yaml").write_text(json.dumps(script), encoding="utf-8")
    agent: Json = {"name": slug, "model": f"scripted:{slug}.yaml", "mcp_servers": [slug], "tools": []}
    agent["tool_policies"] = {"*": {"decision": "allow", "idempotent": True}}
    agent["limits"] = {"max_turns": 30}
    service.call("POST", "/v1/agents", agent)
    for _ in range(AUTHORIZATIONS):
        answer = service.call("POST", "/v1/runs/wait", {"agent": slug, "input": "Go."})
        while answer.get("run", {}).get("status") == "requires_action":
            answer = fill_in(service, answer["run"])
        sys.stderr.write(f"run: {json.dumps(answer)}\n")
        state = service.call("GET", f"/v1/mcp-servers/{slug}/status")["state"]
        if state != "needs_auth" or not authorize(service, slug):
            return


def fill_in(service: Service, asked: Json) -> Json:
    """Send every form as it is, and wait for the run."""
    answers = [{"tool_call_id": call["id"], "result": {"action": "accept", "content": {}}} for call in asked["pending"]]
    service.call("POST", f"/v1/runs/{asked['id']}/resume", {"tool_results": answers})
    return service.call("GET", f"/v1/runs/{asked['id']}/wait?timeout_s=60")


def main(home: str, url: str) -> None:
    """One scenario."""
    service = Service(Path(home))
    slug = f"s{os.urandom(6).hex()}"
    register(service, slug, url)
    if settle(service, slug):
        run(service, slug)


main(*sys.argv[1:])
