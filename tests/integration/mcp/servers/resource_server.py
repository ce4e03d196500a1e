"""An MCP server (2025-11-25, standard library only) whose resources can be subscribed to. Its
tools: `touch` says that a resource was updated, if it is subscribed to; `subscribed` tells which
are, and how often that was asked for; `relist` says that the resources are others; `leave` ends
it."""

import json
import sys
from typing import Any

CAN = {"tools": {}, "resources": {"subscribe": True, "listChanged": True}}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    subscribed: list[str] = []
    asked = 0
    for line in sys.stdin:
        message = json.loads(line)
        call_id, params = message.get("id"), message.get("params", {})
        match message["method"]:
            case "initialize":
                info = {"name": "resources", "version": "1"}
                send(id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": CAN, "serverInfo": info})
            case "tools/list":
                names = ("touch", "subscribed", "relist", "leave")
                send(
                    id=call_id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
                )
            case "resources/subscribe":
                asked += 1
                subscribed.append(params["uri"])
                send(id=call_id, result={})
            case "resources/unsubscribe":
                subscribed.remove(params["uri"])
                send(id=call_id, result={})
            case "tools/call":
                match params["name"], params["arguments"]:
                    case "touch", {"uri": uri} if uri in subscribed:
                        send(method="notifications/resources/updated", params={"uri": uri})
                    case "relist", _:
                        send(method="notifications/resources/list_changed")
                    case "leave", _:
                        return
                    case _:
                        pass
                text = json.dumps([sorted(subscribed), asked])
                send(id=call_id, result={"content": [{"type": "text", "text": text}]})
            case _:
                if call_id is not None:
                    send(id=call_id, error={"code": -32601, "message": "Method not found"})


main()
