"""A well-behaved MCP server (2025-11-25, standard library only): one process, one counter, and
tools to watch it by."""

import json
import sys
from typing import Any

TOOLS = ("count", "echo", "hang", "meta", "progress", "refuse")


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(call_id: Any, text: str) -> None:
    send(id=call_id, result={"content": [{"type": "text", "text": text}]})


def call(call_id: Any, params: dict[str, Any], counted: int) -> None:
    meta = params.get("_meta", {})
    match params["name"]:
        case "count":
            say(call_id, str(counted))
        case "echo":
            say(call_id, params["arguments"]["text"])
        case "meta":
            say(call_id, json.dumps(meta))
        case "hang":
            sys.stderr.write("hanging\n")
            sys.stderr.flush()
        case "progress":
            for number in (1, 2):
                progress = {"progressToken": meta["progressToken"], "progress": number, "total": 2, "message": "on it"}
                send(method="notifications/progress", params=progress)
            say(call_id, "done")
        case "refuse":
            send(id=call_id, error={"code": -32050, "message": "not today"})
        case _ as name:
            send(id=call_id, error={"code": -32602, "message": f"Unknown tool: {name}"})


def main() -> None:
    counted = 0
    for line in sys.stdin:
        message = json.loads(line)
        call_id, params = message.get("id"), message.get("params", {})
        match message["method"]:
            case "initialize":
                info = {"name": "plain", "version": "1"}
                can: dict[str, Any] = {"tools": {}}
                send(id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info})
            case "tools/list":
                send(id=call_id, result={"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in TOOLS]})
            case "tools/call":
                counted += params["name"] == "count"
                call(call_id, params, counted)
            case "notifications/cancelled":
                sys.stderr.write("told that nobody waits\n")
                sys.stderr.flush()
            case _:
                if call_id is not None:
                    send(id=call_id, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
