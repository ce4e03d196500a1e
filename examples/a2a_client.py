"""Asks an agent with A2A's own client, answers what it asks, and follows it again when the
connection is lost.

It needs `a2a-sdk`: python a2a_client.py AGENT "What can you do?" [JSONRPC | HTTP+JSON]"""

import asyncio
import json
import os
import sys
import uuid
from typing import Any

import httpx
from a2a.client import A2AClientError, ClientConfig, create_client
from a2a.types import GetTaskRequest, Message, Part, Role, SendMessageRequest, SubscribeToTaskRequest, Task, TaskState
from a2a.utils.errors import UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

WAITS = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
SHOWN = (*WAITS, TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_REJECTED)


def said(parts: list[Part], task_id: str) -> SendMessageRequest:
    message = Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=parts, task_id=task_id)
    return SendMessageRequest(message=message)


def answered(question: dict[str, Any], text: str) -> Part:
    """The answer to a question, which it names by its id."""
    match question["kind"]:
        case "approval":
            answer: dict[str, Any] = {"approved": text in ("yes", "approve")}
        case "form":
            answer = {"action": "accept", "content": json.loads(text)} if text else {"action": "decline"}
        case "page":
            answer = {"action": "accept" if text == "done" else "cancel"}
        case _:
            answer = {"result": text}
    return Part(data=ParseDict({"id": question["id"], **answer}, Value()))


async def followed(client: Any, parts: list[Part], task_id: str = "") -> Task:
    """The task once it waits or has ended."""
    stream, task = client.send_message(said(parts, task_id)), Task()
    while task.status.state not in SHOWN:
        try:
            async for update in stream:
                if update.HasField("task"):
                    task.CopyFrom(update.task)
                elif update.HasField("status_update"):
                    task.status.CopyFrom(update.status_update.status)
                if task.status.state in SHOWN:  # subscriptions do not end there
                    break
            task = await client.get_task(GetTaskRequest(id=task.id))
        except UnsupportedOperationError:  # it has ended meanwhile
            return await client.get_task(GetTaskRequest(id=task.id))
        except A2AClientError:
            if not task.id:
                raise
            await asyncio.sleep(1)
            stream = client.subscribe(SubscribeToTaskRequest(id=task.id))
    return task


async def main(agent: str, question: str, binding: str = "JSONRPC") -> None:
    headers = {"Authorization": f"Bearer {os.environ['DRAGOMAN_API_KEY']}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        client = await create_client(f"{os.environ['DRAGOMAN_URL']}/a2a/v1/{agent}", config)
        task = await followed(client, [Part(text=question)])
        while task.status.state in WAITS:
            text, data = task.status.message.parts
            print(text.text)
            pending = MessageToDict(data.data)["pending"]
            answers = [answered(each, await asyncio.to_thread(input, f"{each['id']}: ")) for each in pending]
            task = await followed(client, answers, task.id)
        print(TaskState.Name(task.status.state), *(part.text for part in task.artifacts[0].parts))


asyncio.run(main(*sys.argv[1:]))
