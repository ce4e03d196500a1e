"""Webhooks over HTTP: asked for with a run, followed in its log, sent again, and signed with a key
shown once."""

from typing import Any

import httpx
import pytest

from domain.identity.role import Role
from tests.integration.http.service import OTHER_ADMIN, Act, Service, paths_of, problem_of, token_of
from tests.webhook_builders import a_signing_secret

URL = "https://hooks.example.com/T0K3N"


async def started(service: Service, webhook: object, *, act: Act = Act.FINISH) -> httpx.Response:
    if (await service.call("GET", "/v1/agents/announcer")).status_code == 404:
        await service.call("POST", "/v1/agents", json={"name": "announcer", "model": "scripted:demo.yaml"})
    service.worker.act = act
    answer = await service.call("POST", "/v1/runs", json={"agent": "announcer", "input": "Go.", "webhook": webhook})
    service.worker.act = Act.REST
    return answer


async def deliveries(service: Service, run_id: str, *, token: str = token_of(Role.ADMIN)) -> list[dict[str, Any]]:
    answer = await service.call("GET", f"/v1/runs/{run_id}/webhook-deliveries", token=token)
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


@pytest.mark.requirement("E7")
async def test_what_is_announced_of_a_run_is_listed_with_it(service: Service) -> None:
    run = (await started(service, URL)).json()
    [delivery] = await deliveries(service, run["id"], token=token_of(Role.VIEWER))
    assert delivery["id"].startswith("whk_")
    assert delivery == {
        "id": delivery["id"],
        "run_id": run["id"],
        "event": "run.completed",
        "receiver": "hooks.example.com:443",
        "state": "pending",
        "attempts": 0,
        "last_status": None,
        "last_error": None,
        "created_at": delivery["created_at"],
        "next_attempt_at": delivery["created_at"],
        "delivered_at": None,
    }
    problem_of(
        await service.call("GET", f"/v1/runs/{run['id']}/webhook-deliveries", token=OTHER_ADMIN), 404, "run_not_found"
    )
    problem_of(await service.call("GET", "/v1/runs/run_x/webhook-deliveries"), 404, "run_not_found")
    assert "T0K3N" not in (await service.call("GET", f"/v1/runs/{run['id']}")).text


@pytest.mark.requirement("E7")
async def test_a_run_that_waits_is_announced(service: Service) -> None:
    run = (await started(service, {"url": URL, "events": ["run.requires_action"]}, act=Act.APPROVE)).json()
    assert [delivery["event"] for delivery in await deliveries(service, run["id"])] == ["run.requires_action"]
    await service.call("POST", f"/v1/runs/{run['id']}/cancel")
    assert len(await deliveries(service, run["id"])) == 1, "its end was not asked for"


@pytest.mark.requirement("E7", "B16")
@pytest.mark.parametrize(
    ("webhook", "path"),
    [
        ("ftp://example.com/hook", "webhook.url"),
        ("not a url", "webhook.url"),
        ("https://user:planted-password@example.com/", "webhook.url"),
        ("http://127.0.0.1:8080/", "webhook.url"),
        ("http://169.254.169.254/latest", "webhook.url"),
        ({"url": "http://[::1]/"}, "webhook.url"),
        ({"url": URL, "secret": {"secret": "MISSING"}}, "webhook.secret"),
        ({"url": URL, "secret": {"secret": "not a name"}}, "webhook.secret"),
        ({"url": URL, "secret": {"secret": "PASSWORD"}}, "webhook.secret"),
        ({"url": URL, "events": ["turn.started"]}, "webhook.events.0"),
        ({"url": URL, "events": []}, "webhook.events"),
    ],
    ids=str,
)
async def test_a_webhook_that_cannot_be_used_is_refused(service: Service, webhook: object, path: str) -> None:
    await service.call("POST", "/v1/secrets", json={"name": "PASSWORD", "value": "hunter2-but-longer"})
    refused = await started(service, webhook)
    assert paths_of(problem_of(refused, 422, "webhook_invalid")) == [path]
    assert "planted-password" not in refused.text
    assert "hunter2" not in refused.text
    assert (await service.call("GET", "/v1/runs")).json()["data"] == []


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("webhook", "path"),
    [
        (7, "webhook"),
        ({}, "webhook.url"),
        ({"url": URL, "secret": "whsec_inline"}, "webhook.secret"),
        ({"url": URL, "events": ["run.exploded"]}, "webhook.events.0"),
        ({"url": URL, "method": "PUT"}, "webhook.method"),
        ("https://example.com/" + "x" * 9_000, "webhook"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_webhook_of_another_shape_is_refused(service: Service, webhook: object, path: str) -> None:
    assert paths_of(problem_of(await started(service, webhook), 422, "body_invalid")) == [path]


@pytest.mark.requirement("E7")
async def test_a_secret_that_signs_is_taken_by_name(service: Service) -> None:
    await service.call("POST", "/v1/secrets", json={"name": "SIGNING", "value": a_signing_secret()})
    answer = await started(service, {"url": URL, "secret": {"secret": "SIGNING"}})
    assert answer.status_code == 202


@pytest.mark.requirement("E7")
async def test_operators_send_again(service: Service) -> None:
    run = (await started(service, URL)).json()
    [delivery] = await deliveries(service, run["id"])
    again = f"/v1/webhook-deliveries/{delivery['id']}/retry"
    problem_of(await service.call("POST", again, token=token_of(Role.RUNNER)), 403, "role_insufficient")
    problem_of(await service.call("POST", again, token=OTHER_ADMIN), 404, "webhook_delivery_not_found")
    answer = await service.call("POST", again, token=token_of(Role.OPERATOR))
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")
    [entry] = (await service.call("GET", "/v1/audit-events?action=webhook_delivery.retried")).json()["data"]
    assert (entry["resource"], entry["actor"]) == (delivery["id"], "key_operator")


@pytest.mark.requirement("E7", "C6")
async def test_admins_make_a_signing_key_which_is_shown_once(service: Service) -> None:
    path = "/v1/organization/webhook-key"
    problem_of(await service.call("POST", path, token=token_of(Role.OPERATOR)), 403, "role_insufficient")
    first = await service.call("POST", path)
    assert (first.status_code, first.json()["former_signs_until"]) == (201, None)
    assert first.json()["secret"].startswith("whsec_")
    second = (await service.call("POST", path)).json()
    assert second["secret"] != first.json()["secret"]
    assert second["former_signs_until"] > second["created_at"]
    audit = await service.call("GET", "/v1/audit-events?action=webhook_key.created")
    assert len(audit.json()["data"]) == 2
    assert "whsec_" not in audit.text
