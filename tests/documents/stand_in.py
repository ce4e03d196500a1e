"""An MCP server over stdio (2025-11-25, standard library only) in the place of the reader's own: its arguments name its tools, which
answer with what they were given."""

import json
import sys
from typing import Any

ANY_ARGUMENTS = {"type": "object"}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "stand-in", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            tools = [
                {"name": name, "description": f"Does {name}.", "inputSchema": ANY_ARGUMENTS} for name in sys.argv[1:]
            ]
            return {"tools": tools}
        case "tools/call":
            return {"content": [{"type": "text", "text": json.dumps(params.get("arguments", {}))}]}
        case _:
            return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params", {}))
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
