"""The floor: the same runs with nothing but raw sockets and one SQLite commit per run, in a process
of its own.

`python -m benchmarks.floor MODEL_PORT MCP_PORT RUNS CONCURRENCY TOOL_CALLS` prints JSON with CPU
seconds, wall seconds and the bytes a run left in the database.
"""

import asyncio
import json
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.counterparts import TOOL
from benchmarks.raw_http import RawClient


async def one_run(model: RawClient, mcp: RawClient, tool_calls: int) -> list[dict[str, object]]:
    """Model, tool, model, tool, …, answer."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    for index in range(tool_calls):
        await model.post("/v1/chat/completions", json.dumps({"messages": messages}, separators=(",", ":")).encode())
        messages.append({"role": "assistant", "tool_calls": [{"id": str(index), "function": {"name": TOOL}}]})
        call = {
            "jsonrpc": "2.0",
            "id": index,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "hello"}},
        }
        _, answer = await mcp.post("/mcp", json.dumps(call).encode())
        messages.append({"role": "tool", "content": json.loads(answer)["result"]["content"][0]["text"]})
    await model.post("/v1/chat/completions", json.dumps({"messages": messages}, separators=(",", ":")).encode())
    return messages


async def main(model_port: int, mcp_port: int, runs: int, concurrency: int, tool_calls: int) -> None:
    """Measure `runs` runs."""
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "floor.db")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, transcript TEXT)")
        left = iter(range(runs))

        async def worker() -> None:
            model, mcp = RawClient(model_port), RawClient(mcp_port)
            for _ in left:
                transcript = await one_run(model, mcp, tool_calls)
                database.execute("INSERT INTO run (transcript) VALUES (?)", (json.dumps(transcript),))
                database.commit()
            await model.close()
            await mcp.close()

        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(worker())
        wall_s = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        [(pages,)], [(size,)] = database.execute("PRAGMA page_count"), database.execute("PRAGMA page_size")
        database.close()
    print(json.dumps({"cpu_s": cpu_s, "wall_s": wall_s, "stored_bytes": pages * size // runs}))


if __name__ == "__main__":
    asyncio.run(main(*(int(argument) for argument in sys.argv[1:6])))
