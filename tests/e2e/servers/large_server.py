"""An MCP server over stdio (2025-11-25, standard library only) with a thousand tools, a hundred on
each page of its list. Each answers with its name and argument. The title of a tool has words that
neither its name nor its description has."""

import json
import sys
from typing import Any

KINDS = ("invoice", "parcel", "ticket", "contract", "visitor", "sensor", "recipe", "vehicle", "lecture", "ledger")
VERBS = ("archive", "count", "create", "export", "find", "merge", "print", "review", "share", "update")
REGIONS = ("alps", "baltic", "cape", "delta", "eifel", "fjord", "gulf", "harz", "iberia", "jura")
PAGE = 100


def a_tool(verb: str, kind: str, region: str) -> dict[str, Any]:
    return {
        "name": f"{verb}_{kind}_{region}",
        "title": f"Desk {verb}-{region}" if kind == "recipe" else "Desk",
        "description": f"{verb.title()} a {kind} of the office in {region.title()}.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }


TOOLS = [a_tool(verb, kind, region) for verb in VERBS for kind in KINDS for region in REGIONS]


def page(cursor: str | None) -> dict[str, Any]:
    begin = int(cursor or 0)
    end = begin + PAGE
    return {"tools": TOOLS[begin:end], **({"nextCursor": str(end)} if end < len(TOOLS) else {})}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "large", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return page(params.get("cursor"))
        case "tools/call":
            said = f"{params['name']} says {params['arguments'].get('text')}"
            return {"content": [{"type": "text", "text": said}]}
        case _:
            return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = result_of(message["method"], message.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
