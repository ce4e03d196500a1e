"""An MCP server (2025-11-25, standard library only) that misbehaves as its arguments and its tools'
names say."""

import json
import os
import sys
import time
from typing import Any

TOOLS = ["echo", "big", "half_surrogate", "invalid_utf8", "null_result", "batched", "exit", "pid", "change", "hang"]
DEEP: dict[str, Any] = {"type": "object"}
for _ in range(80):
    DEEP = {"type": "object", "properties": {"a": DEEP}}
DOUBLING = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(60)}
HOSTILE_SCHEMAS: dict[str, dict[str, Any]] = {
    "remote": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    "file": {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
    "doubling": {"type": "object", "$defs": {**DOUBLING, "d60": {"type": "object"}}, "$ref": "#/$defs/d0"},
    "deep": DEEP,
    "circular": {"type": "object", "$ref": "#"},
    "wrong": {"type": "object", "properties": {"a": {"type": "no such type"}}},
}


def tools(arguments: list[str]) -> list[dict[str, Any]]:
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
    if "--hostile-schemas" in arguments:
        listed += [{"name": name, "inputSchema": schema} for name, schema in HOSTILE_SCHEMAS.items()]
    if "--many" in arguments or "--renewed" in arguments:
        listed += [{"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(9_990)]
    if "--renewed" in arguments:
        version = time.monotonic_ns()
        for tool in listed:
            tool["description"] = f"Version {version}."
    return listed


def reply(call_id: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": call_id, "result": result}).encode()


def text_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": False}


def call(call_id: Any, name: str, arguments: dict[str, Any]) -> bytes:
    match name:
        case "big":
            result = text_result("x" * arguments["size"])
            if arguments["id_last"]:
                return json.dumps({"result": result, "jsonrpc": "2.0", "id": call_id}).encode()
            return reply(call_id, result)
        case "half_surrogate":
            return reply(call_id, text_result("cut \ud83d"))
        case "invalid_utf8":
            return reply(call_id, text_result("MARK")).replace(b"MARK", b"caf\xe9")
        case "null_result":
            return reply(call_id, None)
        case "batched":
            progress = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
            return b"[" + json.dumps(progress).encode() + b"," + reply(call_id, text_result("from a batch")) + b"]"
        case "exit":
            sys.stderr.write("out of cheese\n")
            sys.stderr.flush()
            os._exit(9)
        case "change":
            TOOLS.append(f"tool_{len(TOOLS)}")
            news = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            return json.dumps(news).encode() + b"\n" + reply(call_id, text_result("changed"))
        case "hang":
            return b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}'
        case "pid":
            return reply(call_id, text_result(str(os.getpid())))
        case _:
            return reply(call_id, text_result(json.dumps(arguments)))


def answer(message: dict[str, Any]) -> bytes | None:
    call_id, params = message.get("id"), message.get("params", {})
    if call_id is None:
        return None
    match message["method"]:
        case "initialize":
            info = {"name": "odd", "version": "1"}
            version = next((given[10:] for given in sys.argv if given.startswith("--version=")), "2025-11-25")
            return reply(
                call_id,
                {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info},
            )
        case "tools/list":
            return reply(call_id, {"tools": tools(sys.argv[1:])})
        case "tools/call":
            return call(call_id, params["name"], params.get("arguments", {}))
        case _:
            error = {"code": -32601, "message": "Method not found"}
            return json.dumps({"jsonrpc": "2.0", "id": call_id, "error": error}).encode()


def main(arguments: list[str]) -> None:
    if "--silent" in arguments:
        sys.stdin.buffer.read()
        return
    out = sys.stdout.buffer
    if "--rubbish" in arguments:
        out.write(
            b"Welcome to the odd server!\n\n{broken\r\n\xff\xfe\x00\n[]\n42\n" + b'{"jsonrpc": "1.0"}\n' + b"x\n" * 5000
        )
    if "--flood" in arguments:
        for number in range(64):
            sys.stderr.buffer.write(b"%02d" % number + b"#" * 65_533 + b"\n")
        sys.stderr.buffer.write(b"the end of the flood\n")
        sys.stderr.flush()
    for line in sys.stdin.buffer:
        if "--tell-pings" in arguments and b'"ping"' in line:
            sys.stderr.write("pinged\n")
            sys.stderr.flush()
        if answered := answer(json.loads(line)):
            out.write(answered + b"\n")
            out.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
