"""Links that sign in to the console."""

from interfaces.console.sessions import COOKIE
from tests.integration.http.service import Service
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
