"""Named secrets over HTTP: set, listed, referred to, deleted; never shown."""

import pytest

from domain.ids import ApiKeyId
from tests.builders import a_key
from tests.integration.http.service import Service, paths_of, problem_of

VALUE = "planted-s3cret-value"


async def set_(service: Service, name: str = "TOKEN", value: str = VALUE) -> int:
    return (await service.call("POST", "/v1/secrets", json={"name": name, "value": value})).status_code


@pytest.mark.requirement("C7")
async def test_a_secret_is_set_listed_changed_and_deleted_and_its_value_never_shown(service: Service) -> None:
    created = await service.call("POST", "/v1/secrets", json={"name": "TOKEN", "value": VALUE})
    assert created.status_code == 201
    assert created.json().keys() == {"name", "created_at", "updated_at"}
    changed = await service.call("POST", "/v1/secrets", json={"name": "TOKEN", "value": VALUE + "2"})
    assert changed.status_code == 200
    assert changed.json()["created_at"] == created.json()["created_at"]

    listed = await service.call("GET", "/v1/secrets")
    assert [secret["name"] for secret in listed.json()["data"]] == ["TOKEN"]
    assert VALUE not in created.text + changed.text + listed.text

    assert (await service.call("DELETE", "/v1/secrets/TOKEN")).status_code == 204
    problem_of(await service.call("DELETE", "/v1/secrets/TOKEN"), 404, "secret_not_found")


@pytest.mark.requirement("C7")
async def test_a_server_refers_to_secrets_by_name_and_shows_the_names(service: Service) -> None:
    await set_(service)
    body = {
        "slug": "mail",
        "kind": "custom",
        "command": "run",
        "env": {"TOKEN": {"secret": "TOKEN"}, "MODE": "fast"},
    }
    made = await service.call("POST", "/v1/mcp-servers", json=body)
    assert made.status_code == 201
    assert made.json()["env"] == {"TOKEN": {"secret": "TOKEN"}, "MODE": "[hidden]"}

    in_use = problem_of(await service.call("DELETE", "/v1/secrets/TOKEN"), 409, "secret_in_use")
    assert in_use["used_by"] == "mail"

    patch = {"env": {"TOKEN": None, "MODE": "[hidden]", "OTHER": {"secret": "LATER"}}}
    patched = await service.call("PATCH", "/v1/mcp-servers/mail", json=patch)
    assert patched.json()["env"] == {"MODE": "[hidden]", "OTHER": {"secret": "LATER"}}
    assert (await service.call("DELETE", "/v1/secrets/TOKEN")).status_code == 204


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"secret": "not a name"}, "env.TOKEN.secret"),
        ({"secret": 1}, "env.TOKEN.secret"),
        ({"name": "TOKEN"}, "env.TOKEN.name"),
        (1, "env.TOKEN"),
        ("[hidden]", "env.TOKEN"),
    ],
)
async def test_a_wrong_reference_is_refused_with_its_path(service: Service, entry: object, path: str) -> None:
    body = {"slug": "mail", "kind": "custom", "command": "run", "env": {"TOKEN": entry}}
    response = await service.call("POST", "/v1/mcp-servers", json=body)
    assert response.status_code == 422
    assert path in paths_of(response.json())


@pytest.mark.requirement("C7")
async def test_a_wrong_secret_is_refused_without_repeating_its_value(service: Service) -> None:
    for body in ({"name": "a b", "value": VALUE}, {"name": "TOKEN", "value": [VALUE]}, {"value": VALUE, "x": VALUE}):
        response = await service.call("POST", "/v1/secrets", json=body)
        assert response.status_code == 422
        assert VALUE not in response.text


@pytest.mark.requirement("B12")
async def test_a_platform_key_rotates_step_by_step(service: Service) -> None:
    key = a_key(ApiKeyId("key_platform"), token="dgm_platform", platform=True)
    service.state.keys[key.id] = key
    steps = [(await service.call("POST", "/v1/secrets/rotate", token="dgm_platform")).json() for _ in range(2)]
    assert steps[0] == {"reencrypted": 200, "remaining": steps[1]["reencrypted"]}
    assert steps[1]["remaining"] == 0
    problem_of(await service.call("POST", "/v1/secrets/rotate"), 403, "platform_key_required")
