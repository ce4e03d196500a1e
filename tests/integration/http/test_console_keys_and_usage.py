"""API keys and usage in the console."""

import re
from datetime import timedelta

import pytest

from domain.identity.role import Role
from tests.builders import START, a_run
from tests.integration.http.service import OTHER_ADMIN, PLATFORM, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_usage import book


@pytest.mark.requirement("C6")
async def test_a_key_is_shown_once_opens_what_its_role_may_and_is_revoked(service: Service) -> None:
    browser = await signed_in(service)
    form = {"name": "ci <b>", "role": "runner", "expires_at": ""}
    made = await browse(service, "POST", "/console/keys", headers=browser, data=form)
    assert made.headers["hx-trigger"] == "keys-changed"
    found = re.search(r'id="token"[^>]* value="(dgm_[^"]+)"', made.text)
    assert found is not None
    token = found[1]
    assert (await service.call("GET", "/v1/agents", token=token)).status_code == 200
    assert (await service.call("GET", "/v1/api-keys", token=token)).status_code == 403
    page = (await browse(service, "GET", "/console/keys", headers={"cookie": browser["cookie"]})).text
    assert token not in page
    assert "ci &lt;b&gt;" in page
    revoke = re.search(r'hx-post="(/console/keys/[^/]+/revoke)"[^>]*Revoke the key ci', page)
    assert revoke is not None
    answer = await browse(service, "POST", revoke[1], headers=browser)
    assert 'class="status revoked"' in answer.text
    assert (await service.call("GET", "/v1/agents", token=token)).status_code == 401
    assert (await browse(service, "POST", revoke[1], headers=browser)).status_code == 200


@pytest.mark.parametrize(
    ("entered", "field"),
    [
        ({"name": " "}, "name"),
        ({"role": "king"}, "role"),
        ({"expires_at": "2001-01-01"}, "expires_at"),
        ({"expires_at": "tomorrow"}, "expires_at"),
    ],
)
async def test_what_is_wrong_with_a_key_is_said_at_its_field(
    service: Service, entered: dict[str, str], field: str
) -> None:
    browser = await signed_in(service)
    form = {"name": "ci", "role": "runner", "expires_at": ""} | entered
    answer = await browse(service, "POST", "/console/keys", headers=browser, data=form)
    assert answer.status_code == 422
    assert re.findall(r'<p class="fault" id="([^"]+)-fault">', answer.text) == [field]
    assert "dgm_" not in answer.text


@pytest.mark.requirement("C6")
async def test_keys_are_for_admins_and_a_platform_key_for_one(service: Service) -> None:
    admin, operator = await signed_in(service), await signed_in(service, token_of(Role.OPERATOR))
    stranger, platform = await signed_in(service, OTHER_ADMIN), await signed_in(service, PLATFORM)
    new = {"name": "ci", "role": "viewer"}
    for method, path, data in (
        ("GET", "/console/keys", {}),
        ("GET", "/console/parts/keys", {}),
        ("POST", "/console/keys", new),
        ("POST", "/console/keys/key_viewer/revoke", {}),
    ):
        assert (await browse(service, method, path, headers=operator, data=data)).status_code == 403
        if method == "POST":
            forged = await browse(service, method, path, headers={"cookie": admin["cookie"]}, data=data)
            assert forged.status_code == 403
    page = await browse(service, "GET", "/console", headers=operator)
    assert "/console/keys" not in page.text
    assert (await browse(service, "POST", "/console/keys/key_viewer/revoke", headers=stranger)).status_code == 404
    assert "key_viewer" not in (await browse(service, "GET", "/console/keys", headers=stranger)).text
    assert (await browse(service, "POST", "/console/keys/key_platform/revoke", headers=admin)).status_code == 403
    assert (await browse(service, "POST", "/console/keys/key_admin/revoke", headers=admin)).status_code == 409
    listed = (await browse(service, "GET", "/console/keys", headers=admin)).text
    assert "/console/keys/key_platform/revoke" not in listed
    assert "/console/keys/key_admin/revoke" not in listed
    assert "/console/keys/key_admin/revoke" in (await browse(service, "GET", "/console/keys", headers=platform)).text


@pytest.mark.requirement("A10")
async def test_usage_is_drawn_and_listed_by_day_agent_and_model(service: Service) -> None:
    book(service)
    browser = await signed_in(service, token_of(Role.VIEWER))
    today, yesterday = START.date(), START.date() - timedelta(days=1)
    path = f"/console/usage?since={yesterday - timedelta(days=1)}&until={today}"
    page = (await browse(service, "GET", path, headers=browser)).text
    assert re.findall(r"<title>([^<]+)</title></rect>", page) == [
        f"{yesterday}: $0.0030",
        f"{today}: $0.0015",
        f"{yesterday}: 240 tokens",
        f"{today}: 120 tokens",
    ]
    assert f"at most $0.0030, on {yesterday}" in page
    days = page.partition('aria-label="By day"')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row">([\d-]+)</th>', days) == [
        str(today - timedelta(days=count)) for count in range(3)
    ]
    assert a_run().agent_id in page.partition("<h2>By agent</h2>")[2]
    assert "openai:gpt-5-mini" in page.partition("<h2>By model</h2>")[2]
    assert '<span class="figure">$0.0045</span> cost' in page
    nothing = (await browse(service, "GET", f"{path}&model=openai:other", headers=browser)).text
    assert "No usage." in nothing
    theirs = (await browse(service, "GET", path, headers=await signed_in(service, OTHER_ADMIN))).text
    assert '<span class="figure">$0.0015</span> cost' in theirs


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=yesterday", "since"),
        ("until=2026-13-01", "until"),
        ("since=2026-02-01&until=2026-01-01", "since"),
        ("since=2020-01-01&until=2026-01-01", "since"),
    ],
)
async def test_a_period_that_cannot_be_is_said_at_its_field(service: Service, query: str, field: str) -> None:
    browser = {"cookie": (await signed_in(service))["cookie"]}
    answer = await browse(service, "GET", f"/console/usage?{query}", headers=browser)
    assert answer.status_code == 422
    assert re.findall(r'<p class="fault" id="([^"]+)-fault">', answer.text) == [field]
    assert '<svg class="area"' not in answer.text


@pytest.mark.parametrize("until", ["0001-01-01", "9999-12-31"])
async def test_the_first_and_the_last_day_there_are_end_a_period(service: Service, until: str) -> None:
    browser = {"cookie": (await signed_in(service))["cookie"]}
    answer = await browse(service, "GET", f"/console/usage?until={until}", headers=browser)
    assert answer.status_code == 200
    assert f'<th scope="row">{until}</th>' in answer.text
