"""Secrets are planted wherever the service takes some; then much goes wrong, and none may be found
where it is not meant."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.e2e.outside import Outside, outside
from tests.e2e.processes import Process, command_line, descendants, environment_of, living, until
from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Json, Service, a_turn, serving

ENV = "planted-env-4c8e1f0b"
HEADER = "planted-header-77d1c2aa"
PROVIDER = "planted-provider-key-0f3b9e"
SECRET_KEY = "planted-secret-key-5a6b7c8d9e"
TRACING = "planted-tracing-key-91ab23"
UNSAVED = "planted-unsaved-3e5d7c"
IN_URL = "planted-in-url-8d20b4"


def forms(secret: str) -> list[bytes]:
    """The secret as it is, and as it is easily turned back; base64 only where the encoding begins
    with it."""
    return [secret.encode(), quote(secret, safe="").encode(), base64.b64encode(secret.encode()).rstrip(b"=")]


def found(secrets: dict[str, str], data: bytes) -> list[str]:
    return [name for name, secret in secrets.items() if any(form in data for form in forms(secret))]


def things_that_go_wrong(service: Service, there: Outside) -> None:
    indiscreet = str(SERVERS / "indiscreet_server.py")
    service.server("indiscreet", *ISOLATED_PYTHON, indiscreet, env={"SERVICE_TOKEN": ENV})
    service.server("exits", *ISOLATED_PYTHON, str(SERVERS / "faulty_server.py"), "exits", env={"SERVICE_TOKEN": ENV})
    service.server("missing", "/nowhere/at-all", env={"SERVICE_TOKEN": ENV})
    headers = {"Authorization": f"Bearer {HEADER}", "X-Api-Key": HEADER}
    remote = {"slug": "remote", "kind": "http", "url": f"{there.url}/mcp", "headers": headers}
    service.call("POST", "/mcp-servers", remote)
    service.call("POST", "/mcp-servers", {**remote, "slug": "remote-sse", "kind": "sse"})
    service.call("POST", "/secrets", {"name": "IN_URL", "value": IN_URL})
    named = {"slug": "named", "kind": "http", "url": f"{there.url}/mcp?token=${{secret:IN_URL}}"}
    service.call("POST", "/mcp-servers", named)
    slugs = ["indiscreet", "exits", "missing", "remote", "remote-sse", "named"]

    calls: list[tuple[str, Json]] = [
        ("mcp__indiscreet__look", {}),
        ("mcp__indiscreet__crash", {}),
        ("mcp__remote__anything", {}),
        ("mcp__named__anything", {}),
    ]
    service.agent("caller", service.script("calls", a_turn("", *calls), a_turn("Done.")), mcp_servers=slugs)
    assert service.run("caller")["run"]["status"] == "completed"
    service.agent("asker", "openai:any-model")
    assert service.run("asker")["run"]["status"] == "failed"
    broken = service.script("broken", a_turn("", ("mcp__indiscreet__look", {})), a_turn("{{ results.nothing }}"))
    service.agent("broken", broken, mcp_servers=["indiscreet"])
    assert service.run("broken")["run"]["status"] == "failed"

    # Requests that are refused, with secrets in them.
    service.call("POST", "/mcp-servers", {**remote, "slug": "remote", "headers": {"K": UNSAVED}}, expect=409)
    service.call("POST", "/mcp-servers", {"slug": "BAD", "kind": "custom", "env": {"K": UNSAVED}}, expect=422)
    service.call("POST", "/mcp-servers", {"slug": "bad", "kind": "custom", "env": [UNSAVED]}, expect=422)
    for args in (["--token", UNSAVED], [f"--api-key={UNSAVED}"], ["--header", f"Authorization: Bearer {UNSAVED}"]):
        body = {"slug": "clear", "kind": "custom", "command": "server", "args": args}
        service.call("POST", "/mcp-servers", body, expect=422)
        service.call("PATCH", "/mcp-servers/missing", {"args": args}, expect=422)
        service.call("POST", "/mcp-servers/import", {"mcpServers": {"clear": {"command": "server", "args": args}}})
    for query in (f"?token={UNSAVED}", f"?api_key={UNSAVED}", f"?x=1&password={UNSAVED}", f"#access_token={UNSAVED}"):
        service.call("POST", "/mcp-servers", {**named, "slug": "clear", "url": f"{there.url}/mcp{query}"}, expect=422)
        service.call("PATCH", "/mcp-servers/named", {"url": f"{there.url}/mcp{query}"}, expect=422)
    credentials = there.url.replace("://", f"://me:{UNSAVED}@")
    service.call("POST", "/mcp-servers", {**named, "slug": "clear", "url": credentials}, expect=422)
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as stranger:
        stranger.get("/v1/agents", params={"api_key": service.key}, headers={"Authorization": f"Bearer {UNSAVED}"})
        stranger.get("/v1/agents", headers={"Authorization": f"Bearer {service.key}x"})


def everything_the_api_says(service: Service, *, at_least: int = 41) -> bytes:
    """Every answer there is to a GET, and those of server tests."""
    paths = ["/agents", "/mcp-servers", "/tools", "/threads", "/runs", "/api-keys", "/audit-events"]
    answers = [service.client.get(path, params={"limit": 100} if path != "/tools" else {}) for path in paths]
    for server in answers[1].json()["data"]:
        base = f"/mcp-servers/{server['slug']}"
        answers += [service.client.get(f"{base}{end}") for end in ("", "/status", "/logs", "/tools")]
        answers.append(service.client.post(f"{base}/test"))
        answers.append(service.client.post(f"{base}/refresh"))
        answers.append(service.client.get(f"{base}/logs"))
    for run in answers[4].json()["data"]:
        base = f"/runs/{run['id']}"
        answers += [service.client.get(f"{base}{end}") for end in ("", "/events", "/wait", "/stream")]
    assert len(answers) >= at_least
    return b"\n".join(answer.content for answer in answers)


@pytest.mark.requirement("A5", "B12", "C6", "G1", "G2")
def test_planted_secrets_are_found_nowhere_but_where_they_are_meant(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with outside() as there:
        settings = {
            "DRAGOMAN_LOG_LEVEL": "debug",
            "DRAGOMAN_LOG_FORMAT": "json",
            "DRAGOMAN_SECRET_KEY": SECRET_KEY,
            "OPENAI_API_KEY": PROVIDER,
            "OPENAI_BASE_URL": f"{there.url}/v1",
            "LANGFUSE_PUBLIC_KEY": "pk-public",
            "LANGFUSE_SECRET_KEY": TRACING,
            "LANGFUSE_HOST": there.url,
        }
        with serving(home, **settings) as service:
            made = service.call("POST", "/api-keys", {"name": "second", "role": "viewer"})
            secrets = {
                "env": ENV,
                "header": HEADER,
                "url": IN_URL,
                "provider key": PROVIDER,
                "secret key": SECRET_KEY,
                "tracing key": TRACING,
                "unsaved": UNSAVED,
                "admin key": service.key,
                "second key": made["token"],
            }
            things_that_go_wrong(service, there)
            # They were really used: the provider and the remote server were shown theirs.
            assert any(PROVIDER in shown for shown in there.heard)
            assert any(HEADER in shown for shown in there.heard)
            assert any(IN_URL in shown for shown in there.heard)

            hold = service.script("hold", a_turn("", ("mcp__indiscreet__held_look", {})))
            service.agent("holder", hold, mcp_servers=["indiscreet"])
            run_id = service.start_run("holder")
            below: set[Process] = set()

            def is_started() -> bool:
                below.clear()
                below.update(descendants(service.process.pid))
                # Until a process begins its own program, it is a part of the service.
                begun = command_line(service.process.pid) not in {command_line(process.pid) for process in below}
                return begun and any(ENV in environment_of(process.pid) for process in below)

            until(is_started, what="the server's process")
            # A server and its launcher know what is meant for it, and nothing else.
            others = {name: secret for name, secret in secrets.items() if name != "env"}
            for process in below:
                assert found(others, environment_of(process.pid).encode()) == []
            for process in living():
                assert found(secrets, command_line(process.pid).encode()) == []
            service.call("POST", f"/runs/{run_id}/cancel")
            service.wait(run_id)

            assert found(secrets, everything_the_api_says(service)) == []
            assert found(secrets, service.client.get(f"{service.url}/schema/openapi.json").content) == []
            assert service.stop() == 0
            assert found(secrets, service.log.read_bytes()) == []
            lines = [json.loads(line) for line in service.log.read_text().splitlines()]
            assert {"info", "warning"} <= {line["level"] for line in lines}
            assert found(secrets, service.output.read_bytes()) == []
        assert there.exports
        assert found(secrets, b"".join(there.exports)) == []
    kept = {path.name: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert kept["dragoman.db"].startswith(b"SQLite format 3")
    assert kept.pop("admin.key").strip().decode() == service.key
    for name, content in kept.items():
        assert found(secrets, content) == [], name
