"""An MCP server (2025-11-25, standard library only) that acts with the `TOKEN` of its environment,
and knows people by it: it says the token backwards. It does not start with a token that begins with
`bad`."""

import json
import os
import sys
from pathlib import Path
from typing import Any

TOKEN = os.environ["TOKEN"]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def said(name: str, arguments: dict[str, str]) -> str:
    match name:
        case "whoami":
            return TOKEN[::-1]
        case "pid":
            return str(os.getpid())
        case "leak":
            sys.stderr.write(f"leaked {TOKEN}\n")
            sys.stderr.flush()
            return f"leaked {TOKEN}"
        case "guess":
            return arguments["text"]
        case "keep":
            Path(arguments["path"]).write_text(TOKEN)
            return "kept"
        case "read":
            return Path(arguments["path"]).read_text()[::-1]
        case "home":
            return f"{os.environ['HOME']} {os.environ.get('TMPDIR')}"
        case _:
            os._exit(3)


def main() -> None:
    sys.stderr.write(f"started with {TOKEN}\n")
    sys.stderr.flush()
    if TOKEN.startswith("bad"):
        sys.exit(4)
    for line in sys.stdin:
        message = json.loads(line)
        call_id, params = message.get("id"), message.get("params", {})
        match message["method"]:
            case "initialize":
                info = {"name": "person", "version": "1"}
                can: dict[str, Any] = {"tools": {}}
                send(id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info})
            case "tools/list":
                names = ("whoami", "pid", "leak", "guess", "keep", "read", "home", "end")
                send(
                    id=call_id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
                )
            case "tools/call":
                try:
                    text, is_error = said(params["name"], params["arguments"]), False
                except OSError as error:
                    text, is_error = type(error).__name__, True
                send(id=call_id, result={"content": [{"type": "text", "text": text}], "isError": is_error})
            case _:
                if call_id is not None:
                    send(id=call_id, error={"code": -32601, "message": "Method not found"})


main()
