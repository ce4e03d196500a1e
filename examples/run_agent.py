"""An agent over HTTP, with httpx: make it, start a run in the background, watch it, approve its
call, and take the stream up again.

DRAGOMAN_URL=http://127.0.0.1:8321 DRAGOMAN_API_KEY=$(cat .dragoman/admin.key) python
examples/run_agent.py
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import httpx

AGENT = {
    "name": "clock",
    "model": "scripted:time.yaml",  # or "openai:gpt-5-mini", where the service has a key
    "instructions": "Say what time it is. Look before you answer.",
    "mcp_servers": ["time"],
    "tool_policies": {"mcp__time__*": {"decision": "require_approval"}},
}
SERVER = {"slug": "time", "kind": "custom", "command": "python", "args": ["-m", "mcp_server_time"]}


def saved(client: httpx.Client, path: str, name: str, body: dict[str, Any]) -> None:
    """Make what is not there yet."""
    if client.get(f"{path}/{name}").status_code == httpx.codes.NOT_FOUND:
        client.post(path, json=body).raise_for_status()


def events(client: httpx.Client, run_id: str, after: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The events of a run behind a number, stored ones first, until it ends or waits."""
    with client.stream("GET", f"/runs/{run_id}/stream", headers={"Last-Event-ID": str(after)}) as answer:
        answer.raise_for_status()
        number, kind = after, ""
        for line in answer.iter_lines():
            field, _, value = line.partition(": ")
            match field:
                case "id":
                    number = int(value)
                case "event":
                    kind = value
                case "data":
                    yield number, kind, json.loads(value)
                case _:
                    pass  # a heartbeat, or the end of an event


def followed(client: httpx.Client, run_id: str) -> str:
    """Print a run as it happens, and approve what it waits for; how it ended. A connection that
    breaks is made again where it broke."""
    seen = 0
    while True:
        try:
            for number, kind, data in events(client, run_id, seen):
                seen = number
                match kind:
                    case "message.delta":
                        print(data["text"], end="", flush=True)
                    case "tool.started":
                        print(f"\n→ {data['name']} {data['params']}")
                    case "run.requires_action":
                        for call in data["pending"]:
                            print(f"\n? {call['name']} {call['params']}")
                            decision = {"decision": "approve", "reason": "It only looks at a clock."}
                            client.post(f"/approvals/{call['approval_id']}", json=decision).raise_for_status()
                    case "end" if data["status"] != "requires_action":
                        return str(data["status"])
                    case _:
                        pass
        except httpx.TransportError:
            print("\n(connecting again)")


def main() -> None:
    key = os.environ["DRAGOMAN_API_KEY"]
    url = os.environ.get("DRAGOMAN_URL", "http://127.0.0.1:8321")
    with httpx.Client(base_url=f"{url}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
        saved(client, "/mcp-servers", "time", SERVER)
        saved(client, "/agents", "clock", AGENT)
        started = client.post("/runs", json={"agent": "clock", "input": "What time is it in Lisbon?"})
        run_id = started.raise_for_status().json()["id"]
        print(f"\n{run_id} {followed(client, run_id)}")


main()
