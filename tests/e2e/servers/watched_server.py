"""An MCP server over stdio (2025-11-25, standard library only) that writes what happens to it into
a log file.

    watched_server.py LOG

Tools: `look` reads only, `note` changes something, `put` does so and may be repeated; `held_look`
and `held_note` are as the first two, and answer once the file named by their argument `gate`
exists; `refuse` fails.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

READ_ONLY = {"readOnlyHint": True}
UNSAFE = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}
IDEMPOTENT = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
TOOLS = {
    "look": READ_ONLY,
    "note": UNSAFE,
    "put": IDEMPOTENT,
    "held_look": READ_ONLY,
    "held_note": UNSAFE,
    "refuse": READ_ONLY,
}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "gate": {"type": "string"}}}


class Server:
    """One connection over stdin and stdout."""

    def __init__(self, log: Path) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._sending = threading.Lock()
        self._cancelled: set[Any] = set()
        self._names: dict[Any, str] = {}

    def serve(self) -> None:
        """Until stdin ends."""
        self.record("started")
        for line in sys.stdin:
            message = json.loads(line)
            call_id, params = message.get("id"), message.get("params", {})
            match message["method"]:
                case "initialize":
                    info = {"name": "watched", "version": "1"}
                    can: dict[str, Any] = {"tools": {}}
                    self.send(
                        id=call_id, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info}
                    )
                case "tools/list":
                    tools = [{"name": n, "inputSchema": SCHEMA, "annotations": hints} for n, hints in TOOLS.items()]
                    self.send(id=call_id, result={"tools": tools})
                case "tools/call":
                    self._names[call_id] = params["name"]
                    threading.Thread(target=self.call, args=(call_id, params), daemon=True).start()
                case "notifications/cancelled":
                    self._cancelled.add(params["requestId"])
                    self.record(f"cancelled {self._names[params['requestId']]}")
                case _:
                    if call_id is not None:
                        self.send(id=call_id, error={"code": -32601, "message": "Method not found"})

    def call(self, call_id: Any, params: dict[str, Any]) -> None:
        """One call, in a thread of its own."""
        name, arguments = params["name"], params.get("arguments", {})
        text = arguments.get("text", "")
        self.record(f"called {name} {text}")
        if name.startswith("held_"):
            gate = Path(arguments["gate"])
            while not gate.exists():
                if call_id in self._cancelled:
                    return
                time.sleep(0.01)
        self.record(f"finished {name} {text}")
        failed = name == "refuse"
        content = [{"type": "text", "text": f"{name} says {text}"}]
        self.send(id=call_id, result={"content": content, "isError": failed})

    def send(self, **message: Any) -> None:
        """One line."""
        with self._sending:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def record(self, event: str) -> None:
        """One line of the log, whole whatever else writes there."""
        os.write(self._log, f"{event.strip()}\n".encode())


if __name__ == "__main__":
    Server(Path(sys.argv[1])).serve()
