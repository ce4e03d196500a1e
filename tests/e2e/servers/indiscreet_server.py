"""An MCP server over stdio (2025-11-25, standard library only) that prints its environment to
stderr, as some do when they start. `look` answers, `held_look` never does, `crash` ends the process
with a traceback."""

import json
import os
import sys
from typing import Any

TOOLS = ("look", "held_look", "crash")


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(call_id: Any, name: str) -> None:
    match name:
        case "look":
            send(id=call_id, result={"content": [{"type": "text", "text": "nothing to see"}]})
        case "crash":
            raise RuntimeError(f"cannot log in with {dict(os.environ)}")
        case _:
            pass


def main() -> None:
    sys.stderr.write(f"starting with {dict(os.environ)}\n")
    sys.stderr.flush()
    for line in sys.stdin:
        message = json.loads(line)
        call_id = message.get("id")
        match message["method"]:
            case "initialize":
                info = {"name": "indiscreet", "version": "1"}
                can: dict[str, Any] = {"tools": {}}
                send(id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info})
            case "tools/list":
                send(id=call_id, result={"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in TOOLS]})
            case "tools/call":
                call(call_id, message["params"]["name"])
            case _:
                if call_id is not None:
                    send(id=call_id, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
