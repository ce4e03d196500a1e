"""A remote agent by A2A's own library: python a2a_agent.py LOG BINDING DESCRIPTION. It prints its
address.

It echoes messages, asks where the text is `ask` or `sign in`, fails where it is `fail`, does not
end where it is `wait`, waits for the file where it is `gate FILE`, and gives files where it is
`files`."""

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)
FILES = (
    ("dot.png", "image/png", PNG),
    ("paper.pdf", "application/pdf", b"%PDF-1.4"),
    ("rows.csv", "text/csv", "town;Łódź".encode()),
    ("notes.md", "", b"# Notes"),
    ("all.zip", "application/zip", b"PK"),
)


class Echo(AgentExecutor):  # type: ignore[misc]
    def __init__(self, log: Path) -> None:
        self._log = log

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        self._note(f"given {text}")
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if text == "ask":
            await updater.requires_input(updater.new_agent_message([Part(text="Which city?")]))
            return
        await updater.start_work()
        if text == "sign in" and context.current_task is None:
            await updater.requires_auth(
                updater.new_agent_message([Part(text="Visit https://example.com/consent first.")])
            )
            return
        if text.startswith("gate "):
            while not Path(text.removeprefix("gate ")).exists():  # noqa: ASYNC110 (a file has no event)
                await asyncio.sleep(0.05)
        if text == "wait":
            await asyncio.Event().wait()
        if text == "fail":
            await updater.failed(updater.new_agent_message([Part(text="No luck.")]))
            return
        if text == "files":
            for name, media_type, raw in FILES:
                await updater.add_artifact([Part(raw=raw, filename=name, media_type=media_type)], name=name)
            await updater.complete()
            return
        data = ParseDict({"said": text}, Value())
        await updater.add_artifact([Part(text=f"echo {text}"), Part(data=data)])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self._note("cancelled")
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    def _note(self, line: str) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def main(log: str, binding: str, description: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    skill = AgentSkill(id="echo", name="Echo", description="Repeats a message.", tags=["echo"])
    card = AgentCard(
        name="Echo",
        description=description,
        version="1",
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill],
    )
    handler = DefaultRequestHandler(Echo(Path(log)), InMemoryTaskStore(), card)
    own = create_rest_routes(handler) if binding == "HTTP+JSON" else create_jsonrpc_routes(handler, "/")
    app = Starlette(routes=[*create_agent_card_routes(card), *own])
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    asyncio.run(server.serve(sockets=[listener]))


main(*sys.argv[1:])
