"""Signing in to the console by links, and by way of identity providers."""

import pytest

from domain.identity.role import Role
from interfaces.console.sessions import COOKIE
from interfaces.console.sign_in_attempts import FAILURES
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse


async def test_a_sign_in_link_signs_in_by_the_button_of_its_page_and_from_no_other_site(service: Service) -> None:
    link = (await service.call("POST", "/v1/sign-in-links")).json()["path"]
    for _ in range(2):
        page = await browse(service, "GET", link)
        assert page.status_code == 200
        assert COOKIE not in page.cookies
        assert f'action="{link}"' in page.text
    for headers in ({"origin": "https://attacker.example"}, {"sec-fetch-site": "cross-site"}):
        assert (await browse(service, "POST", link, headers=headers)).status_code == 403
    signed = await browse(service, "POST", link)
    assert (signed.status_code, signed.headers["location"]) == (303, "/console")
    assert COOKIE in signed.cookies
    assert (await browse(service, "POST", link)).status_code == 401


@pytest.mark.requirement("P1")
async def test_no_other_site_begins_a_sign_in_with_an_identity_provider(service: Service) -> None:
    begin = "/console/sign-in/with/idp_1"
    for headers in ({"origin": "https://attacker.example"}, {"sec-fetch-site": "cross-site"}):
        assert (await browse(service, "POST", begin, headers=headers, data={"next": "/console"})).status_code == 403
    assert (await browse(service, "GET", begin)).status_code == 405
    own = await browse(service, "POST", begin, data={"next": "/console"})
    assert (own.status_code, "idp_1" in own.text) == (404, True)


@pytest.mark.requirement("P1")
async def test_other_sites_cannot_use_up_the_failed_sign_ins_of_an_address(service: Service) -> None:
    for _ in range(FAILURES.calls + 1):
        back = await browse(service, "GET", "/console/sign-in/callback?code=1&state=1")
        assert back.status_code == 401
    signed = await browse(service, "POST", "/console/sign-in", data={"key": token_of(Role.ADMIN)})
    assert (signed.status_code, COOKIE in signed.cookies) == (303, True)
