"""Policies over HTTP: saved, read back, warned about, and explained."""

import pytest

from tests.integration.http.service import OTHER_ADMIN, Service, paths_of, problem_of

GUIDE = {"name": "guide", "model": "scripted:demo.yaml", "tools": ["send_email"]}
RULE = {
    "decision": "require_approval",
    "on_block": "halt",
    "denied_params": ["to"],
    "arguments_schema": {"properties": {"subject": {"maxLength": 50}}},
    "max_calls": 2,
    "on_unknown_outcome": "require_approval",
    "timeout_s": 1.5,
    "allow_self_approval": False,
}


async def explained(service: Service, name: str = "send_email") -> dict[str, object]:
    answer = await service.call("GET", f"/v1/tools/{name}/explain?agent=guide")
    assert answer.status_code == 200
    document: dict[str, object] = answer.json()
    return document


@pytest.mark.requirement("C1")
async def test_policies_are_read_back_as_they_were_saved_and_replaced_as_a_whole(service: Service) -> None:
    created = await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": {"send_email": RULE}})
    assert (created.status_code, created.json()["warnings"]) == (201, [])
    assert (await service.call("GET", "/v1/agents/guide")).json()["tool_policies"] == {"send_email": RULE}
    changes = {"tool_policies": {"*": {"decision": "deny"}}}
    changed = await service.call("PATCH", "/v1/agents/guide", json=changes)
    assert changed.json()["tool_policies"] == {"*": {"decision": "deny"}}
    again = await service.call("PATCH", "/v1/agents/guide", json=changes)
    assert again.json()["version"] == changed.json()["version"] == 2


@pytest.mark.requirement("C2")
async def test_a_policy_for_a_tool_that_is_not_there_is_kept_and_warned_about_with_the_nearest(
    service: Service,
) -> None:
    body = {**GUIDE, "tool_policies": {"send_mail": {"decision": "deny"}}, "tool_allowlist": ["send_*", "zzz"]}
    saved = (await service.call("POST", "/v1/agents", json=body)).json()
    assert saved["tool_policies"] == {"send_mail": {"decision": "deny"}}
    assert saved["warnings"] == [
        "tool_policies.send_mail: no tool of this agent has that name; did you mean 'send_email'?",
        "tool_allowlist.zzz: no tool of this agent has that name",
    ]
    changed = await service.call("PATCH", "/v1/organization", json={"tool_policies": {"sendemail": {"max_calls": 1}}})
    assert [warning.partition(":")[0] for warning in changed.json()["warnings"]] == ["tool_policies.sendemail"]


@pytest.mark.requirement("C2", "S5")
@pytest.mark.parametrize(
    ("policies", "warned"),
    [
        ({"*mail*": {"decision": "deny"}, "send_*": {"timeout_s": 20}}, ["send_*"]),
        ({"*mail*": {"decision": "deny"}, "send_email": {"max_results": 5}}, ["send_email"]),
        ({"*mail*": {"decision": "deny"}, "send_email": {"decision": "require_approval"}}, ["send_email"]),
        ({"*mail*": {"decision": "deny"}, "send_email": {"decision": "allow"}}, ["*mail*"]),
        ({"send_*": {"denied_params": ["to"]}, "send_email": {"max_calls": 5}}, ["send_*"]),
        ({"*mail*": {"decision": "deny"}}, []),
    ],
)
async def test_a_rule_that_another_one_leaves_without_effect_is_warned_about_when_saved(
    service: Service, policies: dict[str, object], warned: list[str]
) -> None:
    saved = (await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": policies})).json()
    changed = await service.call("PATCH", "/v1/organization", json={"tool_policies": policies})
    for warnings in (saved["warnings"], changed.json()["warnings"]):
        assert [warning.partition(":")[0] for warning in warnings] == [f"tool_policies.{pattern}" for pattern in warned]


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("besides", ["send_*", "send_email"])
async def test_a_denial_wins_over_a_more_exact_rule_and_the_explanation_names_both(
    service: Service, besides: str
) -> None:
    policies = {"*mail*": {"decision": "deny"}, besides: {"timeout_s": 20}}
    await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": policies})
    blocked = await explained(service)
    assert (blocked["standing"], blocked["decided_by"]) == ("blocked", {"layer": "agent", "pattern": "*mail*"})
    assert blocked["reasons"] == [
        "Blocked: the model is not shown it, and its calls are refused, by the agent's rule *mail*.",
        f"The denial wins over the agent's rule {besides}: only a more specific decision: allow would permit the tool.",
        f"At most 20 seconds for a call, by the agent's rule {besides}.",
    ]


@pytest.mark.parametrize(
    ("rule", "code", "path"),
    [
        ({"arguments_schema": {"type": "objekt"}}, "agent_invalid", "tool_policies.x.arguments_schema"),
        ({"arguments_schema": {"$ref": "https://example.org/s"}}, "agent_invalid", "tool_policies.x.arguments_schema"),
        ({"overridable": True}, "agent_invalid", "tool_policies.x.overridable"),
        ({"allowed_params": ["a"], "denied_params": ["a"]}, "tool_policy_invalid", "tool_policies.x.denied_params"),
        ({"decisions": "deny"}, "body_invalid", "tool_policies.x.decisions"),
    ],
)
async def test_a_rule_that_cannot_be_is_refused_with_its_place(
    service: Service, rule: dict[str, object], code: str, path: str
) -> None:
    answer = await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": {"x": rule}})
    assert paths_of(problem_of(answer, 422, code)) == [path]


@pytest.mark.requirement("C2")
async def test_an_explanation_says_which_layer_decided_and_what_holds_in_the_end(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={**GUIDE, "tool_policies": {"send_*": {"max_calls": 3}}})
    by_default = await explained(service)
    assert by_default["standing"] == "allowed"
    assert by_default["decided_by"] == {"layer": "built-in", "pattern": None}
    assert by_default["reasons"] == ["Allowed, by default.", "At most 3 calls in a run, by the agent's rule send_*."]

    await service.call("PATCH", "/v1/organization", json={"tool_policies": {"send_email": RULE}})
    asked = await explained(service)
    assert (asked["standing"], asked["decided_by"]) == (
        "asked_for",
        {"layer": "organization", "pattern": "send_email"},
    )
    assert asked["layers"] == [
        {"layer": "organization", "in_allowlist": None, "rules": {"send_email": RULE}},
        {"layer": "agent", "in_allowlist": None, "rules": {"send_*": {"max_calls": 3}}},
    ]
    effective = asked["effective"]
    assert isinstance(effective, dict)
    assert (effective["max_calls"], effective["denied_params"], effective["on_block"]) == (2, ["to"], "halt")
    assert effective["on_unknown_outcome"] == "require_approval"
    assert effective["sources"]["max_calls"] == [{"layer": "organization", "pattern": "send_email"}]

    await service.call("PATCH", "/v1/organization", json={"tool_policies": {"*": {"decision": "deny"}}})
    assert (await explained(service))["standing"] == "blocked"


@pytest.mark.requirement("C2")
async def test_a_hidden_tool_is_explained_by_the_allowlist_that_lacks_it(service: Service) -> None:
    await service.call("POST", "/v1/agents", json=GUIDE)
    await service.call("PATCH", "/v1/organization", json={"tool_allowlist": []})
    hidden = await explained(service)
    assert (hidden["standing"], hidden["decided_by"]) == ("hidden", {"layer": "organization", "pattern": None})
    assert hidden["reasons"] == ["Hidden: the organization's tool_allowlist does not have it."]
    await service.call("PATCH", "/v1/organization", json={"tool_allowlist": None})
    assert (await explained(service))["standing"] == "allowed"
    unlisted = await explained(service, "create_calendar_event")
    assert unlisted["reasons"] == ["Hidden: the agent lists neither the tool nor its MCP server."]


@pytest.mark.requirement("C6")
async def test_there_is_nothing_to_explain_of_unknown_tools_and_of_other_organizations_agents(
    service: Service,
) -> None:
    await service.call("POST", "/v1/agents", json=GUIDE)
    problem = problem_of(await service.call("GET", "/v1/tools/send_mail/explain?agent=guide"), 404, "tool_not_found")
    assert "'send_email'" in str(problem["detail"])
    theirs = await service.call("GET", "/v1/tools/send_email/explain?agent=guide", token=OTHER_ADMIN)
    problem_of(theirs, 404, "agent_not_found")
