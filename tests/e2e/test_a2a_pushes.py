"""Push notifications as the protocol's own client asks for them and its types read them, over a
real service."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.hooks import Hook, hooks
from tests.e2e.processes import until
from tests.e2e.service import Json, a_turn, serving
from tests.e2e.test_a2a import BINDINGS, NOTE, approves, both, connected, json_format, told, types

pytestmark = pytest.mark.requirement("X5", "E7")


def pushed(hook: Hook) -> Any:
    """The task of a notification, held to the protocol's definition."""
    assert (hook.headers["x-a2a-notification-token"], hook.headers["authorization"]) == ("t0ken", "Bearer s3cret")
    response = json_format.Parse(hook.body, types.StreamResponse())
    assert response.WhichOneof("payload") == "task"
    return response.task


def state(hook: Hook) -> str:
    return str(types.TaskState.Name(pushed(hook).status.state))


def config(url: str, **more: Any) -> Any:
    given = types.AuthenticationInfo(scheme="Bearer", credentials="s3cret")
    return types.TaskPushNotificationConfig(url=url, token="t0ken", authentication=given, **more)


@both
async def test_a_receiver_gets_the_task_when_it_waits_and_when_it_has_ended(tmp_path: Path, binding: str) -> None:
    with hooks() as receiver, serving(tmp_path / "home") as service:
        service.watched_server("watched", trusted=True)
        notes = a_turn("May I?", (NOTE, {"text": "x"})), a_turn("Done with {{ user }}.")
        policies: Json = {NOTE: {"decision": "require_approval"}}
        service.agent("guide", service.script("guide", *notes), mcp_servers=["watched"], tool_policies=policies)
        async with connected(service, "guide", binding) as client:
            message = types.Message(message_id=os.urandom(8).hex(), role=types.Role.ROLE_USER)
            message.parts.append(types.Part(text="note it"))
            asks = types.SendMessageConfiguration(task_push_notification_config=config(receiver.url))
            updates = await told(client.send_message(types.SendMessageRequest(message=message, configuration=asks)))
            task = updates[0].task
            until(lambda: len(receiver.got) == 1, what="the first notification")
            await told(client.send_message(approves(updates[-1].status_update.status, task)))
            until(lambda: len(receiver.got) == 2, what="the second notification")
            assert [state(hook) for hook in receiver.got] == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]
            assert pushed(receiver.got[1]).artifacts[0].parts[0].text == "Done with note it."
            await _managed(client, task.id, receiver.url)
        assert len(receiver.got) == 2


async def _managed(client: Any, task_id: str, url: str) -> None:
    """The client's own calls: the config of the message is listed, read and deleted."""
    listed = await client.list_task_push_notification_configs(
        types.ListTaskPushNotificationConfigsRequest(task_id=task_id)
    )
    [found] = listed.configs
    assert (found.task_id, found.url) == (task_id, url)
    named = {"task_id": task_id, "id": found.id}
    read = await client.get_task_push_notification_config(types.GetTaskPushNotificationConfigRequest(**named))
    assert read == found
    again = await client.create_task_push_notification_config(config(url, **named))
    assert again == found
    await client.delete_task_push_notification_config(types.DeleteTaskPushNotificationConfigRequest(**named))


@pytest.mark.parametrize("binding", BINDINGS[:1])
async def test_a_notification_that_was_not_answered_when_the_service_was_killed_is_sent_after_it(
    tmp_path: Path, binding: str
) -> None:
    home = tmp_path / "home"
    with hooks() as receiver:
        receiver.go.clear()
        with serving(home) as service:
            service.agent("guide", service.script("one", a_turn("Done, and well.")))
            async with connected(service, "guide", binding) as client:
                message = types.Message(message_id="m1", role=types.Role.ROLE_USER, parts=[types.Part(text="go")])
                asks = types.SendMessageConfiguration(task_push_notification_config=config(receiver.url))
                await told(client.send_message(types.SendMessageRequest(message=message, configuration=asks)))
            until(lambda: len(receiver.got) == 1, what="the first attempt")
            assert service.stop(signal.SIGKILL) == -signal.SIGKILL
        receiver.go.set()
        with serving(home):
            until(lambda: len(receiver.got) == 2, what="the second attempt")
        first, second = receiver.got
        assert (first.id, first.body) == (second.id, second.body)
        assert state(second) == "TASK_STATE_COMPLETED"
