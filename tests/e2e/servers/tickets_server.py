"""An MCP server over stdio (2025-11-25, standard library only) with the tools of a help desk, of
which each answers with a line."""

import json
import sys
from typing import Any

TOOLS = {
    "add_comment": "Writes a comment below a ticket, which the customer sees.",
    "close_ticket": "Closes a ticket with a reason.",
    "find_ticket": "Finds tickets by words, customer or state, newest first.",
    "read_ticket": "Reads a ticket with its comments by its number.",
}
FIND = {
    "words": {"type": "string", "description": "Words of the subject."},
    "state": {"type": "string", "enum": ["open", "closed"]},
    "limit": {"type": "integer", "default": 10},
}
"""The arguments of find_ticket; the others have none."""


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        call_id = message.get("id")
        match message["method"]:
            case "initialize":
                info = {"name": "tickets", "version": "3.1"}
                can: dict[str, Any] = {"tools": {}}
                send(id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info})
            case "tools/list":
                schemas = {"find_ticket": {"type": "object", "properties": FIND, "required": ["words"]}}
                tools = [
                    {"name": name, "description": told, "inputSchema": schemas.get(name, {"type": "object"})}
                    for name, told in TOOLS.items()
                ]
                send(id=call_id, result={"tools": tools})
            case "tools/call":
                said = f"{message['params']['name']}: done"
                send(id=call_id, result={"content": [{"type": "text", "text": said}]})
            case _:
                if call_id is not None:
                    send(id=call_id, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
