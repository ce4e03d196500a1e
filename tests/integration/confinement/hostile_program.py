"""A program that makes attempts, and writes what came of each as JSON.

    COMMAND DIRECTORY WORLD [serve]

COMMAND is that of `world.py`. WORLD is JSON with the paths and processes of a `World`. With `serve`
it is an MCP server, and writes to outcomes.json in its HOME.
"""

import json
import os
import subprocess
import sys

from tests.integration.confinement import (
    attempts_on_files,
    attempts_on_kernel,
    attempts_on_processes,
    attempts_on_rights,
)
from tests.integration.confinement.attempt import ATTEMPTS, Attempt, World

__all__ = ["NAMES", "attempts_on_files", "attempts_on_kernel", "attempts_on_processes", "attempts_on_rights", "main"]
NAMES = tuple(ATTEMPTS)
"""All attempts, since the modules are loaded."""


def outcome(function: Attempt, world: World) -> str:
    try:
        found = function(world)
    except (OSError, KeyError, ValueError, subprocess.SubprocessError) as exc:
        return f"denied: {type(exc).__name__} {exc}"
    return f"succeeded: {found!r}"


def serve() -> None:
    """As an MCP server without tools, until stdin ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            info = {"name": "hostile", "version": "1"}
            begun = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            result = begun if message["method"] == "initialize" else {"tools": []}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


def main(arguments: list[str]) -> None:
    world = json.loads(arguments[0])
    chosen = world["attempts"] or ATTEMPTS
    outcomes = {name: outcome(ATTEMPTS[name], world) for name in chosen}
    if arguments[1:] == ["serve"]:
        with open(f"{os.environ['HOME']}/outcomes.json", "w", encoding="utf-8") as file:
            json.dump(outcomes, file)
        serve()
    else:
        json.dump(outcomes, sys.stdout)
        sys.stdout.flush()
