"""An MCP server over stdio (2025-11-25, standard library only) that says planted texts.

    planting_server.py TEXTS

TEXTS is a file with a JSON object of texts by name. Every tool takes the `name` of one: `say`
answers with it, `refuse` fails with it, `break` answers with a JSON-RPC error that quotes it,
`report` tells it as its progress and answers with something else, `shape` has it in its structured
content only. `keep` takes any text.
"""

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = ("say", "refuse", "break", "report", "shape", "keep")
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "text": {"type": "string"}}}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(call_id: Any, params: dict[str, Any], texts: dict[str, str]) -> None:
    text = texts.get(params.get("arguments", {}).get("name", ""), "kept")
    content = [{"type": "text", "text": f"found: {text}"}]
    match params["name"]:
        case "refuse":
            send(id=call_id, result={"content": content, "isError": True})
        case "break":
            send(id=call_id, error={"code": -32000, "message": f"cannot read {text}", "data": {"row": text}})
        case "report":
            told = {"progressToken": params["_meta"]["progressToken"], "progress": 1, "total": 2, "message": text}
            send(method="notifications/progress", params=told)
            send(id=call_id, result={"content": [{"type": "text", "text": "reported"}]})
        case "shape":
            send(id=call_id, result={"content": [], "structuredContent": {"rows": [{text: 1}]}})
        case _:
            send(id=call_id, result={"content": content})


def main() -> None:
    texts = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for line in sys.stdin:
        message = json.loads(line)
        call_id = message.get("id")
        match message["method"]:
            case "initialize":
                info = {"name": "planting", "version": "1"}
                can: dict[str, Any] = {"tools": {}}
                send(id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info})
            case "tools/list":
                send(id=call_id, result={"tools": [{"name": name, "inputSchema": SCHEMA} for name in TOOLS]})
            case "tools/call":
                call(call_id, message["params"], texts)
            case _:
                if call_id is not None:
                    send(id=call_id, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
