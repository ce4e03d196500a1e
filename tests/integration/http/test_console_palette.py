"""The palette of the console: what it finds, once each, and only what its reader may open."""

import re

import pytest

from domain.identity.role import Role
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_console import waiting_run
from tests.integration.http.test_console_areas import page, send
from tests.integration.http.test_console_chat import sent

pytestmark = pytest.mark.requirement("U6")


async def found(service: Service, words: str, token: str | None = None) -> list[tuple[str, str]]:
    """Names with their kinds."""
    shown = await page(service, f"/parts/palette?find={words}", token)
    return re.findall(r'<a href="[^"]+">(.+?) <small>(?:.*?</kbd> )?([^<]+)</small>', shown)


async def test_the_palette_finds_what_has_a_name_and_what_the_role_may_see(service: Service) -> None:
    await waiting_run(service)
    assert await found(service, "GUIDE") == [("guide", "Agent")]
    assert "API keys" in await page(service, "/parts/palette")
    assert "API keys" not in await page(service, "/parts/palette", token_of(Role.VIEWER))
    assert "Nothing has this name." in await page(service, "/parts/palette?find=guide", OTHER_ADMIN)


async def test_a_conversation_is_found_without_the_run_that_began_it_and_runs_that_were_asked_the_same_once(
    service: Service,
) -> None:
    first = await sent(service, "Count the apples")
    everything = ("All runs with “apples”", "Search")
    assert await found(service, "apples") == [("Count the apples", "Conversation"), everything]
    for _ in range(2):
        await sent(service, "And the apples of yesterday?", thread_id=first["thread_id"])
    assert await found(service, "apples") == [
        ("Count the apples", "Conversation"),
        ("And the apples of yesterday?", "Run"),
        everything,
    ]


async def test_admins_find_keys_secrets_groups_and_what_can_be_made_and_viewers_do_not(service: Service) -> None:
    await send(service, "/keys", name="quince bot", role="viewer")
    await send(service, "/secrets", secret_name="QUINCE_TOKEN", secret_value="s3cret-value")
    await send(service, "/people/groups", name="Quince lovers")
    kinds = {("Quince lovers", "Group"), ("quince bot", "API key"), ("QUINCE_TOKEN", "Secret")}
    assert set(await found(service, "quince")) == kinds
    assert await found(service, "quince", token_of(Role.VIEWER)) == []
    assert ("New agent", "Action") in await found(service, "new")
    assert await found(service, "new", token_of(Role.VIEWER)) == []


async def test_every_page_and_action_that_the_palette_names_opens(service: Service) -> None:
    shown = [await page(service, f"/parts/palette?find={vowel}") for vowel in "aeiou"]
    links = {link for each in shown for link in re.findall(r'<a href="/console([^"?]*)">', each)}
    assert {"/inbox/decided", "/servers-import", "/workflows/new", "/people/roles"} <= links
    for link in sorted(links):
        assert "<main" in await page(service, link), link
