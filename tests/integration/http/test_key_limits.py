"""The ends and limits of keys over HTTP."""

import pytest

from domain.identity.role import Role
from tests.integration.http.service import Service, paths_of, problem_of, token_of


@pytest.mark.requirement("C6")
async def test_a_key_that_is_used_too_often_is_told_when_to_come_back(service: Service) -> None:
    body = {"name": "ci", "role": "viewer", "rate_limit": {"calls": 1, "per_s": 10}}
    created = (await service.call("POST", "/v1/api-keys", json=body)).json()
    assert created["rate_limit"] == {"calls": 1, "per_s": 10.0}
    assert (await service.call("GET", "/v1/agents", token=created["token"])).status_code == 200
    refused = await service.call("GET", "/v1/agents", token=created["token"])
    problem_of(refused, 429, "rate_limited")
    assert refused.headers["retry-after"] == "10"
    assert (await service.call("GET", "/v1/agents", token=token_of(Role.VIEWER))).status_code == 200


@pytest.mark.requirement("C6")
async def test_an_end_a_last_use_and_a_role_are_listed_and_no_token_is(service: Service) -> None:
    body = {"name": "ci", "role": "viewer", "expires_at": "2030-01-01T02:00:00+02:00"}
    created = (await service.call("POST", "/v1/api-keys", json=body)).json()
    assert (created["expires_at"], created["last_used_at"]) == ("2030-01-01T00:00:00.000000Z", None)
    await service.call("GET", "/v1/agents", token=created["token"])
    listed = await service.call("GET", "/v1/api-keys")
    (seen,) = [key for key in listed.json()["data"] if key["id"] == created["id"]]
    assert seen["last_used_at"] is not None
    assert created["token"] not in listed.text


@pytest.mark.parametrize(
    ("wrong", "code", "path"),
    [
        ({"expires_at": "2020-01-01T00:00:00Z"}, "api_key_invalid", "expires_at"),
        ({"expires_at": "2030-01-01T00:00:00"}, "body_invalid", "expires_at"),
        ({"expires_at": "soon"}, "body_invalid", "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-12:00"}, "body_invalid", "expires_at"),
        ({"rate_limit": {"calls": 0, "per_s": 1}}, "body_invalid", "rate_limit.calls"),
        ({"role": "platform"}, "body_invalid", "role"),
    ],
)
async def test_a_key_that_cannot_be_is_refused_by_the_place(
    service: Service, wrong: dict[str, object], code: str, path: str
) -> None:
    refused = await service.call("POST", "/v1/api-keys", json={"name": "ci", "role": "viewer", **wrong})
    assert paths_of(problem_of(refused, 422, code)) == [path]
