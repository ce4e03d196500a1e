"""Push notification configs of A2A at the edge: both bindings, whose they are, and which addresses
are refused."""

from typing import Any

import pytest

from domain.a2a.push import MAX_CONFIGS
from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.a2a_client import ADMIN, AGENT, Json, called, failed, rest, rpc, rpc_failed, says, sent
from tests.integration.http.service import OTHER_ADMIN, Act, Service, token_of

pytestmark = pytest.mark.requirement("X5", "E7")

URL = "https://hooks.example.com/T0K3N"
GIVEN: Json = {
    "id": "mine",
    "url": URL,
    "token": "t0ken",
    "authentication": {"scheme": "Bearer", "credentials": "s3cret"},
}


@pytest.fixture(autouse=True)
async def agents(service: Service) -> None:
    for name in ("guide", "other"):
        await service.call("POST", "/v1/agents", json={"name": name, "model": MODEL})


async def waiting(service: Service, **more: Any) -> str:
    """The id of a task that waits for an approval."""
    service.worker.act = Act.APPROVE
    task = await sent(service, **more)
    service.worker.act = Act.FINISH
    return str(task["id"])


def at(task_id: str, config: str = "") -> str:
    return f"/tasks/{task_id}/pushNotificationConfigs{config}"


async def receivers(service: Service, task_id: str) -> list[tuple[str, str]]:
    answer = await service.call("GET", f"/v1/runs/{task_id}/webhook-deliveries")
    return [(delivery["receiver"], delivery["event"]) for delivery in answer.json()["data"]]


async def test_a_config_is_created_read_listed_and_deleted_on_both_bindings(service: Service) -> None:
    task_id = await waiting(service)
    shown = {"id": "mine", "taskId": task_id, "url": URL, "authentication": {"scheme": "Bearer"}}
    assert (await rest(service, "POST", at(task_id), json=GIVEN)).json() == shown
    assert await called(service, "CreateTaskPushNotificationConfig", {**GIVEN, "taskId": task_id}) == shown
    named = {"taskId": task_id, "id": "mine"}
    assert (await rest(service, "GET", at(task_id, "/mine"))).json() == shown
    assert await called(service, "GetTaskPushNotificationConfig", named) == shown
    listed = {"configs": [shown], "nextPageToken": ""}
    assert (await rest(service, "GET", at(task_id))).json() == listed
    assert await called(service, "ListTaskPushNotificationConfigs", {"taskId": task_id}) == listed
    assert await receivers(service, task_id) == [("hooks.example.com:443", "run.requires_action")]
    assert (await rest(service, "DELETE", at(task_id, "/mine"))).json() == {}
    assert await called(service, "DeleteTaskPushNotificationConfig", named) == {}
    failed(await rest(service, "GET", at(task_id, "/mine")), 404, "TASK_NOT_FOUND")
    rpc_failed(await rpc(service, "GetTaskPushNotificationConfig", named), -32001)
    assert await receivers(service, task_id) == []


async def test_a_message_brings_a_config_for_its_task(service: Service) -> None:
    task_id = await waiting(service, configuration={"taskPushNotificationConfig": GIVEN})
    assert [each["id"] for each in (await rest(service, "GET", at(task_id))).json()["configs"]] == ["mine"]
    assert await receivers(service, task_id) == [("hooks.example.com:443", "run.requires_action")]
    card = (await rest(service, "GET", "/extendedAgentCard")).json()
    assert card["capabilities"]["pushNotifications"] is True


@pytest.mark.requirement("B16")
@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://127.0.0.1:8080/"},
        {"url": "http://169.254.169.254/latest"},
        {"url": "ftp://example.com/hook"},
        {"url": URL, "token": "a\r\nX-Other: 1"},
        {"url": URL, "authentication": {"scheme": "Bearer x", "credentials": "y"}},
        {"token": "no address"},
    ],
    ids=str,
)
async def test_a_config_that_is_refused_begins_no_task(service: Service, wrong: Json) -> None:
    task_id = await waiting(service)
    failed(await rest(service, "POST", at(task_id), json=wrong), 400, _code(wrong))
    rpc_failed(await rpc(service, "CreateTaskPushNotificationConfig", {**wrong, "taskId": task_id}), -32602)
    config: Json = {"taskPushNotificationConfig": wrong}
    for method in ("SendMessage", "SendStreamingMessage"):
        rpc_failed(await rpc(service, method, says(configuration=config)), -32602)
    assert (await called(service, "ListTasks"))["totalSize"] == 1
    assert (await rest(service, "GET", at(task_id))).json()["configs"] == []


async def test_a_config_too_many_for_its_task_leaves_the_message_without_effect(service: Service) -> None:
    task_id = await waiting(service)
    for number in range(MAX_CONFIGS):
        await rest(service, "POST", at(task_id), json={"id": f"c{number}", "url": URL})
    task = await called(service, "GetTask", {"id": task_id})
    [asked] = task["status"]["message"]["parts"][1]["data"]["pending"]

    def answer(config: str) -> Json:
        pushes: Json = {"taskPushNotificationConfig": {"id": config, "url": URL}}
        return says(taskId=task_id, parts=[{"data": {"id": asked["id"], "approved": True}}], configuration=pushes)

    failed(await rest(service, "POST", "/message:send", json=answer("more")), 429, "PUSH_CONFIGS_LIMIT")
    assert (await called(service, "GetTask", {"id": task_id}))["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    sent = await called(service, "SendMessage", answer("c1"))
    assert sent["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def _code(wrong: Json) -> str:
    is_address = wrong.keys() == {"url"}
    return "WEBHOOK_INVALID" if is_address else "BODY_INVALID"


@pytest.mark.requirement("C6")
async def test_configs_of_others_are_not_reached(service: Service) -> None:
    task_id = await waiting(service, configuration={"taskPushNotificationConfig": GIVEN})
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL}, token=OTHER_ADMIN)
    calls = (("POST", ""), ("GET", ""), ("GET", "/mine"), ("DELETE", "/mine"))
    for token, agent in ((OTHER_ADMIN, AGENT), (ADMIN, "/a2a/v1/other")):
        for method, config in calls:
            answer = await rest(service, method, at(task_id, config), json=GIVEN, token=token, agent=agent)
            failed(answer, 404, "TASK_NOT_FOUND")
    for role, code in ((Role.RUNNER, "RUN_NOT_YOURS"), (Role.VIEWER, "ROLE_INSUFFICIENT")):
        for method, config in calls:
            answer = await rest(service, method, at(task_id, config), json=GIVEN, token=token_of(role))
            failed(answer, 403, code)
    assert len((await rest(service, "GET", at(task_id))).json()["configs"]) == 1
