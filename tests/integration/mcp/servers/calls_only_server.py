"""A program that answers `tools/call` and ends at any other message."""

import json
import sys

methods: list[str] = []
for line in sys.stdin:
    message = json.loads(line)
    methods.append(message["method"])
    if message["method"] != "tools/call":
        sys.exit(f"unexpected {message['method']}")
    text = f"call {len(methods)} of {methods}"
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
