"""The gateway when its service is killed, and when two of them share a database that one of them
does not hear of."""

import json
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.e2e.silence import line_to
from tests.e2e.test_postgres import until_true_of_what_began_a_second_later

pytestmark = pytest.mark.timeout(300)

NOTE = "mcp__watched__note"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def sent(service: Service, token: str, method: str, *, query: str = "", modern: bool = False, **params: Any) -> Json:
    """The answer to a request of either generation, with its `status`."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    if modern:
        params["_meta"] = META
        headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        headers |= {"Mcp-Name": params["name"]} if "name" in params else {}
    else:
        headers["MCP-Protocol-Version"] = "2025-11-25"
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    response = httpx.post(f"{service.url}/mcp{query}", json=message, headers=headers, timeout=60, trust_env=False)
    return {"status": response.status_code, **response.json()}


def noted(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.startswith("called note")] if log.exists() else []


def pending_of(service: Service) -> list[Json]:
    found: list[Json] = service.call("GET", "/approvals?state=pending")["data"]
    return found


def approved_after_a_kill(
    tmp_path: Path, waits: Callable[[Service, str], object], again: Callable[[Service, str, Any], Json]
) -> None:
    """A call waits, the service is killed, somebody approves what is asked by the next one, and the
    client comes back twice."""
    home = tmp_path / "home"
    with serving(home) as service:
        log = service.watched_server("watched")
        policies = {NOTE: {"decision": "require_approval"}}
        script = service.script("helper", a_turn("Hello."))
        service.agent("helper", script, mcp_servers=["watched"], tools=[], tool_policies=policies)
        token = service.call("POST", "/gateway-sessions", {"agent_id": "helper"})["token"]
        left_with = waits(service, token)
        [approval] = pending_of(service)
        service.stop(signal.SIGKILL)
    with serving(home) as second:
        [kept] = pending_of(second)
        assert (kept["id"], kept["tool"], kept["arguments"]) == (approval["id"], NOTE, {"text": "first"})
        assert noted(log) == []
        second.call("POST", f"/approvals/{kept['id']}", {"decision": "approve"})
        second.stop(signal.SIGKILL)  # also what was decided survives
    with serving(home) as third:
        answer = again(third, token, left_with)["result"]
        assert (answer["isError"], answer["content"][0]["text"]) == (False, "note says first")
        assert noted(log) == ["called note first"]
        once_more = again(third, token, left_with)
        assert noted(log) == ["called note first"], once_more
        executed = third.call("GET", "/audit-events?limit=100")["data"]
        assert [entry["action"] for entry in executed].count("tool.executed") == 1


@pytest.mark.requirement("C3", "E3", "F5")
def test_a_call_of_an_older_client_that_waits_survives_kills_and_is_made_once(tmp_path: Path) -> None:
    def waits(service: Service, token: str) -> None:
        # Its client is still waiting for the answer when the service goes.
        def ask() -> None:
            with pytest.raises(httpx.HTTPError):
                sent(service, token, "tools/call", name=NOTE, arguments={"text": "first"})

        waiting.append(threading.Thread(target=ask))
        waiting[0].start()
        until(lambda: len(pending_of(service)) == 1, what="the question")

    def again(service: Service, token: str, _: object) -> Json:
        if not asked:
            asked.append(True)
            return sent(service, token, "tools/call", name=NOTE, arguments={"text": "first"})
        # Made, and not approved again: the same words are another call now, that asks anew.
        params = {"name": NOTE, "arguments": {"text": "first"}}
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "Content-Type": "application/json"}
        address = urlsplit(service.url)
        with closing(HTTPConnection(str(address.hostname), address.port, timeout=60)) as client:
            client.request("POST", "/mcp", json.dumps(message), headers)
            until(lambda: len(pending_of(service)) == 1, what="another question")
            assert select.select([client.sock], [], [], 0) == ([], [], []), "it is not answered"
        return {}

    waiting: list[threading.Thread] = []
    asked: list[bool] = []
    approved_after_a_kill(tmp_path, waits, again)
    waiting[0].join(timeout=30)
    assert not waiting[0].is_alive()


@pytest.mark.requirement("C3", "E3", "F5")
def test_a_newer_client_comes_back_after_kills_with_what_it_was_given(tmp_path: Path) -> None:
    def waits(service: Service, token: str) -> str:
        answer = sent(service, token, "tools/call", modern=True, name=NOTE, arguments={"text": "first"})
        assert answer["result"]["resultType"] == "input_required"
        return str(answer["result"]["requestState"])

    def again(service: Service, token: str, state: Any) -> Json:
        return sent(
            service, token, "tools/call", modern=True, name=NOTE, arguments={"text": "first"}, requestState=state
        )

    approved_after_a_kill(tmp_path, waits, again)


@pytest.mark.requirement("C6", "E6", "F5")
@pytest.mark.parametrize("is_silent", [False, True], ids=["told", "not told"])
def test_what_one_process_revokes_is_refused_by_another_within_a_second(
    tmp_path: Path, postgres_databases: PostgresDatabases, is_silent: bool
) -> None:
    with postgres_databases.fresh() as url, line_to(url) as line, cluster(url, tmp_path) as processes:
        first = processes.serve("api-1", "--no-worker")
        processes.extra["DRAGOMAN_DATABASE_URL"] = line.url
        second = processes.serve("api-2", "--no-worker")
        first.agent("helper", first.script("helper", a_turn("Hello.")), tools=["code_execution"])
        ended, kept = (first.call("POST", "/gateway-sessions", {"agent_id": "helper"}) for _ in range(2))
        key = first.call("POST", "/api-keys", {"name": "short-lived", "role": "runner"})

        def status(token: str, query: str = "") -> int:
            answer = sent(second, token, "tools/list", query=query)
            assert ("result" in answer) is (answer["status"] == 200), answer
            return int(answer["status"])

        def of_key() -> int:
            return status(key["token"], "?agent=helper")

        assert [status(ended["token"]), status(kept["token"]), of_key()] == [200, 200, 200]
        if is_silent:
            line.is_silent.set()
            assert line.swallowed.wait(timeout=60)
        assert [status(ended["token"]), of_key()] == [200, 200]
        assert first.client.delete(f"/gateway-sessions/{ended['id']}").is_success
        revoked = time.monotonic()
        until_true_of_what_began_a_second_later(revoked, lambda: status(ended["token"]) == 401)
        assert first.client.delete(f"/api-keys/{key['id']}").is_success
        revoked = time.monotonic()
        until_true_of_what_began_a_second_later(revoked, lambda: of_key() == 401)
        assert status(kept["token"]) == 200, "who was not revoked is still served"
        line.is_silent.clear()
