"""An MCP server (2025-11-25, standard library only) that tells what it was started with: its
environment and arguments, as a tool result and on stderr."""

import json
import os
import sys
from typing import Any


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    environment = json.dumps(dict(os.environ))
    sys.stderr.write(f"started with {environment}\n")
    sys.stderr.flush()
    if "--fail" in sys.argv:
        sys.exit(3)
    for line in sys.stdin:
        message = json.loads(line)
        call_id = message.get("id")
        match message["method"]:
            case "initialize":
                info = {"name": "telling", "version": "1"}
                can: dict[str, Any] = {"tools": {}}
                send(id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info})
            case "tools/list":
                send(id=call_id, result={"tools": [{"name": "tell", "inputSchema": {"type": "object"}}]})
            case "tools/call":
                sizes = {name: len(value) for name, value in os.environ.items()}
                told = {"environment": dict(os.environ), "sizes": sizes, "arguments": sys.argv}
                if "hold" in message["params"]["arguments"]:
                    continue  # answered never
                if "fail" in message["params"]["arguments"]:
                    send(id=call_id, error={"code": -32050, "message": json.dumps(told)})
                    continue
                send(
                    id=call_id,
                    result={"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told},
                )
            case _:
                if call_id is not None:
                    send(id=call_id, error={"code": -32601, "message": "Method not found"})


main()
