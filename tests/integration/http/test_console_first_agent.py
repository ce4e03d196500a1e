"""The first-run page of the console: what it refuses, and what it keeps of a refused form."""

import pytest

from domain.identity.role import Role
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse, signed_in

PAGE = "/console/first-agent"
SCRIPTED = {"model": "scripted", "server": "none", "name": "guide", "input": "", "api_key": ""}


async def test_the_overview_leads_admins_to_it_as_long_as_nothing_has_run(service: Service) -> None:
    admin, operator = await signed_in(service), await signed_in(service, token_of(Role.OPERATOR))
    assert PAGE in (await browse(service, "GET", "/console", headers=admin)).text
    assert PAGE not in (await browse(service, "GET", "/console", headers=operator)).text


@pytest.mark.requirement("U2", "C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_it_is_for_admins_alone(service: Service, role: Role) -> None:
    person = await signed_in(service, token_of(role))
    assert (await browse(service, "GET", PAGE, headers=person)).status_code == 403
    assert (await browse(service, "POST", PAGE, headers=person, data=SCRIPTED)).status_code == 403
    assert (await service.call("GET", "/v1/agents")).json()["data"] == []


async def test_what_is_wrong_is_said_at_its_field_and_no_agent_is_made(service: Service) -> None:
    admin = await signed_in(service)
    answer = await browse(service, "POST", PAGE, headers=admin, data={**SCRIPTED, "model": "openai:gpt-5-mini"})
    assert (answer.status_code, answer.headers["hx-retarget"]) == (422, "#faults")
    assert 'data-field="model"' in answer.text
    assert (await service.call("GET", "/v1/agents")).json()["data"] == []


async def test_a_server_of_the_list_is_registered_and_its_installation_followed(service: Service) -> None:
    admin = await signed_in(service)
    await browse(service, "POST", PAGE, headers=admin, data={**SCRIPTED, "server": "memory"})
    server = (await service.call("GET", "/v1/mcp-servers/memory")).json()
    assert (server["kind"], server["package"]) == ("npm", "@modelcontextprotocol/server-memory")
    again = await browse(service, "POST", PAGE, headers=admin, data={**SCRIPTED, "server": "memory"})
    assert again.status_code == 422, "the model is refused here, the server that is there is not"


async def test_a_request_from_another_site_makes_nothing(service: Service) -> None:
    admin = await signed_in(service)
    forged = {"cookie": admin["cookie"]}
    assert (await browse(service, "POST", PAGE, headers=forged, data=SCRIPTED)).status_code == 403
    assert (await browse(service, "POST", f"{PAGE}/hello", headers=forged, data={})).status_code == 403
