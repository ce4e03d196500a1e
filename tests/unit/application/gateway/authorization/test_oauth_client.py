"""What an OAuth client may say about itself, and where a browser may be sent back to."""

import pytest

from application.gateway.authorization.oauth_client import (
    MAX_NAME,
    MAX_REDIRECT_URIS,
    client_of,
    host_of,
    is_client_url,
    is_local,
)
from domain.json_value import JsonObject
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P5")

WEB = "https://client.example/callback"
LOCAL = "http://127.0.0.1:33418/callback"


def metadata(*uris: str, **more: object) -> JsonObject:
    return {"client_name": "Client", "redirect_uris": [*uris], **more}  # type: ignore[dict-item]


@pytest.mark.parametrize("uri", [WEB, LOCAL, "http://[::1]/", "http://localhost", "cursor://anysphere.cursor/callback"])
def test_redirect_uris_of_the_web_of_this_machine_and_of_programs_are_taken(uri: str) -> None:
    assert client_of(metadata(uri), client_id="c").accepts(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/callback",
        "http://client.example/callback",
        "javascript://client.example/%0aalert(1)",
        "JavaScript://client.example/%0aalert(1)",
        "data://text/html,x",
        "file:///etc/passwd",
        "https://client.example/callback#fragment",
        "https://user@client.example/callback",
        "http://127.0.0.1:80@evil.example/callback",
        "https://client.example\\@evil.example/",
        "https://client.example/call back",
        "https://clïent.example/",
        "https:///callback",
        "https://client.example:port/",
        "https://client.example/" + "a" * 500,
    ],
)
def test_no_other_redirect_uri_is_taken(uri: str) -> None:
    with refused("invalid_redirect_uri"):
        client_of(metadata(uri), client_id="c")


def test_a_registration_has_some_redirect_uris_and_not_too_many() -> None:
    for uris in ((), (WEB,) * (MAX_REDIRECT_URIS + 1)):
        with refused("invalid_redirect_uri"):
            client_of(metadata(*uris), client_id="c")
    with refused("invalid_redirect_uri"):
        client_of({"redirect_uris": [7]}, client_id="c")
    with refused("invalid_redirect_uri"):
        client_of({"redirect_uris": WEB}, client_id="c")


@pytest.mark.parametrize(
    "more",
    [
        {"client_name": "x" * (MAX_NAME + 1)},
        {"client_name": "two\nlines"},
        {"client_name": 7},
        {"response_types": ["token"]},
        {"grant_types": ["client_credentials"]},
        {"grant_types": "authorization_code"},
    ],
)
def test_a_client_with_another_name_or_grant_than_people_can_consent_to_is_refused(more: JsonObject) -> None:
    with refused("invalid_client_metadata"):
        client_of({**metadata(WEB), **more}, client_id="c")


def test_a_client_without_a_name_has_that_of_its_host() -> None:
    nameless: JsonObject = {"redirect_uris": [WEB]}
    assert client_of(nameless, client_id="c", host="documents.example").name == "documents.example"
    assert client_of(nameless, client_id="c").name == "client.example"
    assert client_of({"redirect_uris": ["cursor://x/y"]}, client_id="c").name == "cursor:"


def test_a_redirect_uri_is_compared_as_it_is_except_for_the_port_on_this_machine() -> None:
    client = client_of(metadata(WEB, LOCAL, "cursor://x/callback"), client_id="c")
    assert client.accepts("http://127.0.0.1:1024/callback")
    assert client.accepts("http://127.0.0.1/callback")
    for other in (
        f"{WEB}/",
        f"{WEB}?a=b",
        "https://client.example:8443/callback",
        "https://CLIENT.example/callback",
        "https://client.example.evil.example/callback",
        "http://127.0.0.1:1024/other",
        "http://127.0.0.1:1024/callback?x=1",
        "http://localhost:1024/callback",
        "https://127.0.0.1:1024/callback",
        "http://127.0.0.1:1024@evil.example/callback",
        "cursor://x:1/callback",
        "",
    ):
        assert not client.accepts(other), other


def test_a_client_id_is_the_url_of_a_document_in_one_reading_only() -> None:
    assert is_client_url("https://client.example/oauth/client.json")
    assert is_client_url("http://127.0.0.1:8000/client.json")
    for other in (
        "https://client.example",
        "https://client.example/",
        "http://client.example/client.json",
        "https://client.example/a/../client.json",
        "https://client.example/client.json?x=1",
        "https://client.example/client.json#x",
        "https://a@client.example/client.json",
        "ftp://client.example/client.json",
        "client",
        "",
    ):
        assert not is_client_url(other), other


def test_people_are_told_the_host_and_whether_it_is_their_own_machine() -> None:
    assert (host_of(WEB), is_local(WEB)) == ("client.example", False)
    assert (host_of(LOCAL), is_local(LOCAL)) == ("127.0.0.1", True)
    assert (host_of("cursor://x/y"), is_local("cursor://x/y")) == ("cursor:", True)
