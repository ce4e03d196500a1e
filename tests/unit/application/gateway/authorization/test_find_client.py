"""FindOAuthClient: whose document counts, and whose registration."""

import pytest

from application.gateway.authorization.find_client import FindOAuthClient
from application.gateway.authorization.oauth_client import MAX_REDIRECT_URIS
from application.gateway.authorization.registrations import UNUSED_LASTS
from domain.identity.api_key import hash_token
from domain.json_value import JsonObject
from tests.gateway_builders import CALLBACK, CLIENT, a_client_grant
from tests.refusals import refused
from tests.unit.application.gateway.authorization.scene import BOX, DOCUMENT, Scene

pytestmark = pytest.mark.requirement("P5")

REGISTRATION: JsonObject = {"client_name": "Editor", "redirect_uris": [CALLBACK], "scope": "everything"}


async def test_a_url_is_the_client_that_its_document_describes(scene: Scene) -> None:
    find = FindOAuthClient(documents=scene.documents, registrations=scene.registrations)
    client = await find.execute(CLIENT)
    assert (client.id, client.name, client.host) == (CLIENT, "Editor", "client.example")
    scene.documents.read.assert_awaited_once_with(CLIENT)


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_id": None},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"client_secret": "shown"},
        {"token_endpoint_auth_method": "none", "client_secret": "shown"},
        {"client_secret_expires_at": 0},
        {"redirect_uris": ["javascript://x"]},
        {"redirect_uris": None},
    ],
)
async def test_a_document_of_another_client_or_one_with_a_secret_is_refused(scene: Scene, changes: JsonObject) -> None:
    scene.documents.read.return_value = {**DOCUMENT, **changes}
    with refused("invalid_client"):
        await scene.find_client.execute(CLIENT)


async def test_a_registration_is_found_by_its_client_id_and_nothing_is_stored(scene: Scene) -> None:
    registered = scene.registrations.register(REGISTRATION)
    found = await scene.find_client.execute(registered.id)
    assert found == registered
    assert (found.name, found.redirect_uris, found.host) == ("Editor", (CALLBACK,), None)
    scene.documents.read.assert_not_awaited()
    assert not scene.state.client_grants


async def test_a_client_id_that_was_changed_or_made_elsewhere_is_unknown(scene: Scene) -> None:
    registered = scene.registrations.register(REGISTRATION).id
    elsewhere = "dgc_" + BOX.encrypt(b'{"for": "other"}').decode()
    for client_id in ("dgc_", "dgc_é", f"{registered}00", registered[:-2], elsewhere, "dgc_" + "a" * 2_000, "client"):
        with refused("invalid_client"):
            await scene.find_client.execute(client_id)


async def test_a_registration_that_nobody_used_expires_and_a_used_one_stays(scene: Scene) -> None:
    used, unused = (scene.registrations.register({**REGISTRATION, "client_name": name}).id for name in ("a", "b"))
    session_id = scene.with_grant()
    scene.state.client_grants[session_id] = a_client_grant(session_id, client_id=used)
    scene.clock.advance(UNUSED_LASTS.total_seconds())
    assert (await scene.find_client.execute(used)).name == "a"
    with refused("invalid_client"):
        await scene.find_client.execute(unused)
    assert await scene.grants.is_known(hash_token(used))


def test_a_registration_that_fits_in_no_address_is_refused(scene: Scene) -> None:
    long = [f"https://client.example/{number}/{'a' * 400}" for number in range(MAX_REDIRECT_URIS)]
    with refused("invalid_client_metadata"):
        scene.registrations.register({"redirect_uris": [*long]})
