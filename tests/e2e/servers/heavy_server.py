"""An MCP server over stdio (2025-11-25, standard library only) whose tool `go` answers what its
argument names: results that are much work for the client, though none is larger than two
megabytes."""

import json
import sys
from typing import Any

KINDS = ("numbers", "objects", "texts", "blocks", "options")
OPTIONS = {"properties": {"rows": {"items": {"enum": [{"a": number} for number in range(14_000)]}}}}


def result_of(kind: str) -> dict[str, Any]:
    match kind:
        case "numbers":
            return {"content": [], "structuredContent": {"rows": [0] * 900_000}}
        case "objects":
            return {"content": [], "structuredContent": {"rows": [{"a": 1}] * 180_000}}
        case "texts":
            return {"content": [], "structuredContent": {"rows": ["%%"] * 290_000}}
        case "blocks":
            return {"content": [{"type": "text", "text": "x"}] * 60_000}
        case _:
            return {"content": [], "structuredContent": {"rows": [{"a": 13_999}] * 2_000}}


def main(kind: str) -> None:
    tool: dict[str, Any] = {"name": "go", "inputSchema": {"type": "object"}}
    if kind == "options":
        tool["outputSchema"] = {"type": "object", **OPTIONS}
    server_info = {"name": "heavy", "version": "1"}
    begun = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server_info}
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        results = {"initialize": begun, "tools/list": {"tools": [tool]}, "ping": {}}
        if "id" in message and method is not None:
            result = result_of(kind) if method == "tools/call" else results.get(method, {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
