"""An MCP server (2025-11-25, standard library only) that logs while it works: the level that it was
told, and one message of each level from that on. The answer to a call with `hold` comes with that
to the next one."""

import json
import sys
from typing import Any

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    level, times, held = "debug", 0, []
    for line in sys.stdin:
        message = json.loads(line)
        call_id, params = message.get("id"), message.get("params", {})
        match message["method"]:
            case "initialize":
                can: dict[str, Any] = {"tools": {}, "logging": {}}
                info = {"name": "logging", "version": "1"}
                send(id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info})
            case "tools/list":
                send(id=call_id, result={"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})
            case "logging/setLevel":
                level, times = params["level"], times + 1
                send(id=call_id, result={})
            case "tools/call":
                for one in LEVELS[LEVELS.index(level) :]:
                    data = params["arguments"].get("say", one)
                    send(method="notifications/message", params={"level": one, "logger": "work", "data": data})
                if "hold" in params["arguments"]:
                    held.append(call_id)
                    continue
                for one in (*held, call_id):
                    text = json.dumps([level, times])
                    send(id=one, result={"content": [{"type": "text", "text": text}]})
                held.clear()
            case _:
                if call_id is not None:
                    send(id=call_id, error={"code": -32601, "message": "Method not found"})


main()
