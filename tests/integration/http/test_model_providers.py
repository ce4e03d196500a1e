"""Model providers over HTTP."""

import pytest

from domain.identity.role import Role
from tests.integration.http.service import Service, paths_of, problem_of, token_of

BODY = {"name": "acme", "kind": "openai", "base_url": "https://models.example.com/v1", "api_key": "sk-nobody-sees"}


@pytest.mark.requirement("C7")
async def test_a_provider_is_added_read_changed_and_deleted_and_its_key_never_shown(service: Service) -> None:
    created = await service.call("POST", "/v1/model-providers", json=BODY)
    assert (created.status_code, created.headers["etag"]) == (201, '"1"')
    assert created.json().items() >= {**BODY, "api_key": "[hidden]", "version": 1}.items()

    changed = await service.call(
        "PATCH", "/v1/model-providers/acme", json={"api_key": {"secret": "ACME"}}, headers={"If-Match": '"1"'}
    )
    assert (changed.status_code, changed.json()["api_key"]) == (200, {"secret": "ACME"})
    stale = await service.call("PATCH", "/v1/model-providers/acme", json={"api_key": None}, headers={"If-Match": '"1"'})
    problem_of(stale, 412, "version_conflict")
    without = await service.call("PATCH", "/v1/model-providers/acme", json={"api_key": None})
    assert without.json()["api_key"] is None

    read = await service.call("GET", "/v1/model-providers/acme", token=token_of(Role.VIEWER))
    listed = await service.call("GET", "/v1/model-providers", token=token_of(Role.VIEWER))
    assert listed.json()["data"] == [read.json()]
    assert (await service.call("DELETE", "/v1/model-providers/acme")).status_code == 204
    problem_of(await service.call("GET", "/v1/model-providers/acme"), 404, "model_provider_not_found")

    audit = await service.call("GET", "/v1/audit-events?action=model_provider.*")
    said = [entry["action"].partition(".")[2] for entry in audit.json()["data"]]
    assert said == ["deleted", "updated", "updated", "created"]
    for response in (created, changed, read, listed, audit):
        assert "sk-nobody-sees" not in response.text


@pytest.mark.requirement("H2", "H6")
async def test_wire_and_deployments_are_stored_and_keys_of_deployments_never_shown(service: Service) -> None:
    eu = {"name": "eu", "base_url": "https://eu.example.com/v1", "api_key": "sk-nobody-sees-eu", "weight": 3}
    us = {"name": "us", "api_key": {"secret": "US"}}
    created = await service.call(
        "POST", "/v1/model-providers", json={**BODY, "wire": "responses", "deployments": [eu, us]}
    )
    assert created.json()["wire"] == "responses"
    assert created.json()["deployments"] == [
        {**eu, "api_key": "[hidden]"},
        {**us, "base_url": None, "weight": 1},
    ]
    changed = await service.call(
        "PATCH", "/v1/model-providers/acme", json={"wire": "auto", "deployments": [{"name": "own"}]}
    )
    assert changed.json()["wire"] == "auto"
    assert changed.json()["deployments"] == [{"name": "own", "base_url": None, "api_key": None, "weight": 1}]
    unset = await service.call("PATCH", "/v1/model-providers/acme", json={"wire": None})
    assert paths_of(problem_of(unset, 422, "body_invalid")) == ["wire"]
    assert "sk-nobody" not in created.text + changed.text


@pytest.mark.requirement("H2")
async def test_where_reasoning_goes_back_is_stored_and_for_chat_completions_only(service: Service) -> None:
    created = await service.call("POST", "/v1/model-providers", json=BODY)
    assert created.json()["echo_reasoning"] == "tool_loop"
    changed = await service.call("PATCH", "/v1/model-providers/acme", json={"echo_reasoning": "always"})
    assert changed.json()["echo_reasoning"] == "always"
    read = await service.call("GET", "/v1/model-providers/acme")
    assert read.json() == changed.json()
    claude = {"name": "claude", "kind": "anthropic", "echo_reasoning": "never"}
    refused = await service.call("POST", "/v1/model-providers", json=claude)
    assert paths_of(problem_of(refused, 422, "model_provider_invalid")) == ["echo_reasoning"]


@pytest.mark.requirement("H4")
async def test_cloud_settings_are_stored_changed_as_a_whole_and_checked(service: Service) -> None:
    body = {"name": "aws", "kind": "bedrock", "cloud": {"region": "eu-central-1"}, "api_key": {"secret": "AWS"}}
    created = await service.call("POST", "/v1/model-providers", json=body)
    assert created.status_code == 201
    assert created.json()["base_url"] == "https://bedrock-runtime.eu-central-1.amazonaws.com"
    nothing = {"project": None, "role": None, "profile": None, "tenant_id": None, "client_id": None}
    assert created.json()["cloud"] == {"region": "eu-central-1", "identity": "key", **nothing}
    role = "arn:aws:iam::123456789012:role/models"
    changed = await service.call("PATCH", "/v1/model-providers/aws", json={"cloud": {"role": role}})
    assert changed.json()["cloud"] == {**nothing, "region": None, "identity": "key", "role": role}
    refused = await service.call("PATCH", "/v1/model-providers/aws", json={"cloud": {"project": "p"}})
    assert paths_of(problem_of(refused, 422, "model_provider_invalid")) == ["cloud.project"]


@pytest.mark.requirement("H4")
async def test_a_provider_is_tested_with_a_line_for_each_check_of_each_deployment(service: Service) -> None:
    deployments = [{"name": "eu"}, {"name": "us"}]
    await service.call("POST", "/v1/model-providers", json={**BODY, "deployments": deployments})
    tested = await service.call("POST", "/v1/model-providers/acme/test", json={"model": "small"})
    assert tested.status_code == 200
    answer = tested.json()
    assert (answer["ok"], answer["provider"], answer["model"]) == (True, "acme", "acme:small")
    names = ["credentials", "model", "tool_call", "streaming"]
    assert [(line["deployment"], line["check"]) for line in answer["checks"]] == [
        (deployment, name) for deployment in ("eu", "us") for name in names
    ]
    unused = (await service.call("POST", "/v1/model-providers/acme/test", json={})).json()
    assert (unused["ok"], unused["model"]) == (False, None)
    audit = await service.call("GET", "/v1/audit-events?action=model_provider.tested")
    assert [entry["details"]["ok"] for entry in audit.json()["data"]] == [False, True]


@pytest.mark.requirement("H4")
async def test_a_provider_whose_secret_is_missing_is_told_by_its_test(service: Service) -> None:
    await service.call("POST", "/v1/model-providers", json={**BODY, "api_key": {"secret": "GONE"}})
    [line] = (await service.call("POST", "/v1/model-providers/acme/test", json={"model": "m"})).json()["checks"]
    assert (line["check"], line["outcome"]) == ("credentials", "failed")
    assert "'GONE'" in line["detail"]
    listed = await service.call("GET", "/v1/model-providers/acme/models")
    problem_of(listed, 503, "model_list_unavailable")


@pytest.mark.requirement("H4")
async def test_models_of_a_provider_are_listed(service: Service) -> None:
    await service.call("POST", "/v1/model-providers", json=BODY)
    listed = await service.call("GET", "/v1/model-providers/acme/models", token=token_of(Role.VIEWER))
    assert listed.json() == {"data": ["acme:large", "acme:small"]}


async def test_without_a_base_url_a_provider_is_the_vendor(service: Service) -> None:
    created = await service.call("POST", "/v1/model-providers", json={"name": "claude", "kind": "anthropic"})
    assert (created.json()["base_url"], created.json()["api_key"]) == ("https://api.anthropic.com", None)


async def test_a_name_is_given_once(service: Service) -> None:
    await service.call("POST", "/v1/model-providers", json=BODY)
    problem_of(await service.call("POST", "/v1/model-providers", json=BODY), 409, "model_provider_exists")


@pytest.mark.requirement("B16", "C7")
@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:8000/v1", "http://169.254.169.254/", "http://[::1]/v1", "http://0x7f000001/v1"]
)
async def test_an_address_inside_is_refused_when_it_is_saved(service: Service, base_url: str) -> None:
    refused = await service.call("POST", "/v1/model-providers", json={**BODY, "base_url": base_url})
    assert paths_of(problem_of(refused, 422, "model_provider_invalid")) == ["base_url"]
    await service.call("POST", "/v1/model-providers", json=BODY)
    changed = await service.call("PATCH", "/v1/model-providers/acme", json={"base_url": base_url})
    assert paths_of(problem_of(changed, 422, "model_provider_invalid")) == ["base_url"]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"name": "scripted"}, "name"),
        ({"name": "Acme Inc"}, "name"),
        ({"base_url": "models.example.com"}, "base_url"),
        ({"base_url": "https://me:pw@models.example.com"}, "base_url"),
        ({"base_url": "https://models.example.com/v1?key=1"}, "base_url"),
        ({"base_url": "https://models.example.com:99999/"}, "base_url"),
        ({"base_url": "https://models.example.com/\u0000"}, "base_url"),
        ({"api_key": "two words"}, "api_key"),
        ({"api_key": ""}, "api_key"),
        ({"api_key": {"secret": "not a name"}}, "api_key.secret"),
        ({"kind": "anthropic", "wire": "chat"}, "wire"),
        ({"kind": "azure", "base_url": None}, "base_url"),
        ({"kind": "bedrock", "base_url": None}, "base_url"),
        ({"deployments": [{"name": "a"}, {"name": "a"}]}, "deployments.1.name"),
        ({"deployments": [{"name": "A"}]}, "deployments.0.name"),
        ({"deployments": [{"name": "a", "base_url": "models"}]}, "deployments.0.base_url"),
        ({"deployments": [{"name": "a", "base_url": "http://127.0.0.1/v1"}]}, "deployments.0.base_url"),
        ({"deployments": [{"name": "a", "api_key": "two words"}]}, "deployments.0.api_key"),
    ],
)
async def test_what_cannot_work_is_refused_by_its_place_and_the_key_not_repeated(
    service: Service, wrong: dict[str, object], path: str
) -> None:
    refused = await service.call("POST", "/v1/model-providers", json={**BODY, **wrong})
    assert paths_of(problem_of(refused, 422, "model_provider_invalid")) == [path]
    assert "two words" not in refused.text
    assert "sk-nobody-sees" not in refused.text


@pytest.mark.parametrize("body", [{**BODY, "kind": "other"}, {**BODY, "models": []}, {"name": "acme"}])
async def test_a_body_of_another_shape_is_refused(service: Service, body: dict[str, object]) -> None:
    problem_of(await service.call("POST", "/v1/model-providers", json=body), 422, "body_invalid")
