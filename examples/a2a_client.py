"""Asks an agent with A2A's own client, answers what it asks, and follows it again when the connection is lost.

It needs `a2a-sdk`: python a2a_client.py "What can you do?" [JSONRPC | HTTP+JSON]"""

import asyncio
import os
import sys
import uuid
from typing import Any

import httpx
from a2a.client import A2AClientError, ClientConfig, create_client
from a2a.types import GetTaskRequest, Message, Part, Role, SendMessageRequest, SubscribeToTaskRequest, Task, TaskState
from a2a.utils.errors import UnsupportedOperationError

WAITS = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
SHOWN = (*WAITS, TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_REJECTED)


def said(text: str, task_id: str) -> SendMessageRequest:
    message = Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=[Part(text=text)], task_id=task_id)
    return SendMessageRequest(message=message)


async def followed(client: Any, text: str, task_id: str = "") -> Task:
    """The task once it waits or has ended."""
    stream, task = client.send_message(said(text, task_id)), Task()
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


async def main(question: str, binding: str = "JSONRPC") -> None:
    headers = {"Authorization": f"Bearer {os.environ['DRAGOMAN_API_KEY']}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        client = await create_client(f"{os.environ['DRAGOMAN_URL']}/a2a/v1/guide", config)
        task = await followed(client, question)
        while task.status.state in WAITS:
            answer = await asyncio.to_thread(input, task.status.message.parts[0].text + " ")
            task = await followed(client, answer, task.id)
        print(TaskState.Name(task.status.state), *(part.text for part in task.artifacts[0].parts))


asyncio.run(main(*sys.argv[1:]))
