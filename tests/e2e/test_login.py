"""People who sign in to the command line with a real identity provider."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.dragoman_process import DEADLINE_S, Dragoman
from tests.e2e.identity_provider import CLI_CLIENT, IdentityProvider, needs_identity_provider, providing, register
from tests.e2e.service import Service, serving

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("P1"), needs_identity_provider()]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("login") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def provider(service: Service) -> Iterator[IdentityProvider]:
    with providing(service) as running:
        register(service, running, audiences=[], cli_client_id=CLI_CLIENT)
        yield running


@pytest.fixture
def dragoman(service: Service, tmp_path: Path) -> Dragoman:
    """The command line of a person: it knows the service's address, and no key."""
    commands = Dragoman(tmp_path / "nothing")
    commands.environment |= {"DRAGOMAN_URL": service.url, "DRAGOMAN_CONFIG_DIR": str(tmp_path / "config")}
    return commands


def stored(dragoman: Dragoman) -> list[Path]:
    return [*Path(dragoman.environment["DRAGOMAN_CONFIG_DIR"]).glob("**/*.json")]


def expire(dragoman: Dragoman) -> None:
    [file] = stored(dragoman)
    file.write_text(json.dumps({**json.loads(file.read_text()), "expires_at": 0}))


def address_in(begun: "subprocess.Popen[str]") -> str:
    """The address that a command shows to its person."""
    assert begun.stderr is not None
    for line in begun.stderr:
        if found := re.search(r"http://127\.0\.0\.1:\d+/(?:device|auth)\S*", line):
            return found.group()
    raise AssertionError("the command showed no address")


def ended(begun: "subprocess.Popen[str]") -> str:
    _, err = begun.communicate(timeout=DEADLINE_S)
    return f"exit code {begun.returncode}\n{err}"


def logged_in(dragoman: Dragoman, provider: IdentityProvider, name: str) -> str:
    """Sign in with a browser on this machine; what the command said after it."""
    begun = dragoman.start("login", "--browser")
    with httpx.Client(trust_env=False, timeout=60.0) as browser:
        assert browser.get(provider.answer(browser, address_in(begun), name)).is_success
    return ended(begun)


def test_a_person_confirms_a_code_and_is_known_until_they_sign_out(
    service: Service, provider: IdentityProvider, dragoman: Dragoman
) -> None:
    assert "dragoman login" in dragoman.run("whoami", exit_code=2).err

    begun = dragoman.start("login")
    assert "Sign-in Success" in provider.confirm(address_in(begun), "ann")
    assert "as ann: operator of default" in ended(begun)
    [file] = stored(dragoman)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    who = dragoman.run("whoami", "--json").json
    assert (who["kind"], who["name"], who["email"], who["role"]) == ("user", "ann", "ann@example.com", "operator")
    assert (who["issuer"], who["organization_name"]) == (provider.issuer, "default")
    assert dragoman.run("agent", "list", "--json").json["data"] == []
    assert "operator" in dragoman.run("whoami").out

    refresh_token = json.loads(file.read_text())["refresh_token"]
    assert "Signed out" in dragoman.run("logout").err
    assert not stored(dragoman)
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": CLI_CLIENT}
    answer = httpx.post(f"{provider.issuer}/token", data=form, trust_env=False, timeout=60.0)
    assert answer.json()["error"] == "invalid_grant"
    assert "not signed in" in dragoman.run("logout").err


def test_an_expired_token_is_renewed_once_by_commands_that_run_at_the_same_time(
    provider: IdentityProvider, dragoman: Dragoman
) -> None:
    assert "exit code 0" in logged_in(dragoman, provider, "bob")
    expire(dragoman)
    begun = [dragoman.start("whoami", "--json") for _ in range(3)]
    assert [ended(each) for each in begun] == ["exit code 0\n"] * 3
    # The provider ends a sign-in whose refresh token is used twice.
    expire(dragoman)
    assert dragoman.run("whoami", "--json").json["name"] == "bob"


def test_a_person_whom_no_rule_admits_is_refused_and_nothing_is_stored(
    provider: IdentityProvider, dragoman: Dragoman
) -> None:
    refused = logged_in(dragoman, provider, "eve")
    assert "exit code 1" in refused
    assert "No rule of the identity provider admits you." in refused
    assert not stored(dragoman)


def test_a_sign_in_that_was_deactivated_or_has_expired_says_so(
    service: Service, provider: IdentityProvider, dragoman: Dragoman
) -> None:
    assert "exit code 0" in logged_in(dragoman, provider, "carla")
    user = dragoman.run("whoami", "--json").json["id"]
    service.call("PATCH", f"/users/{user}", {"status": "deactivated"})
    assert "Your access to this organization has ended." in dragoman.run("whoami", exit_code=1).err
    service.call("PATCH", f"/users/{user}", {"status": "active"})
    [file] = stored(dragoman)
    file.write_text(json.dumps({**json.loads(file.read_text()), "expires_at": 0, "refresh_token": None}))
    assert "has expired. Sign in again" in dragoman.run("whoami", exit_code=1).err


def test_the_sign_in_comes_before_the_key_of_the_data_directory_and_after_one_of_the_settings(
    service: Service, provider: IdentityProvider, dragoman: Dragoman
) -> None:
    del dragoman.environment["DRAGOMAN_URL"]
    dragoman.environment["DRAGOMAN_HOME"] = str(service.home)
    here = DragomanHere(service.home)
    here.environment = dragoman.environment
    assert here.run("whoami", "--json").json["kind"] == "api_key"
    assert "exit code 0" in logged_in(dragoman, provider, "ann")
    assert here.run("whoami", "--json").json["kind"] == "user"
    assert here.run("whoami", "--json", DRAGOMAN_API_KEY=service.key).json["kind"] == "api_key"
    here.run("logout")
    assert here.run("whoami", "--json").json["kind"] == "api_key"
