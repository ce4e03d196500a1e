"""GrantAccess: what a consent stores, and what the client gets of it."""

from urllib.parse import parse_qs, urlsplit

import pytest

from application.gateway.authorization.grant_access import GrantAccess, GrantAccessCommand
from domain.audit.event import AuditAction
from domain.identity.api_key import hash_token
from domain.ids import ApiKeyId
from tests.builders import AGENT, START, after
from tests.gateway_builders import CALLBACK, CHALLENGE, CLIENT, RESOURCE
from tests.people_builders import USER
from tests.refusals import refused
from tests.unit.application.gateway.authorization.scene import Scene, asked

pytestmark = pytest.mark.requirement("P5")


async def test_a_consent_is_a_code_for_this_person_client_agent_and_resource(scene: Scene) -> None:
    await scene.with_agent()
    grant_access = GrantAccess(check_authorization=scene.check, grants=scene.grants, clock=scene.clock, ids=scene.ids)
    url = await grant_access.execute(GrantAccessCommand(request=asked()))
    assert url.startswith(f"{CALLBACK}?code=dgk_")
    answer = parse_qs(urlsplit(url).query)
    assert (answer["state"], answer["iss"]) == (["state-of-the-client"], ["https://dragoman.example"])
    [grant] = scene.state.client_grants.values()
    assert grant.code_hash == hash_token(answer["code"][0])
    assert (grant.redirect_uri, grant.resource, grant.challenge) == (CALLBACK, RESOURCE, CHALLENGE)
    assert (grant.client_hash, grant.code_expires_at, grant.redeemed_at) == (hash_token(CLIENT), after(60), None)
    session = scene.session(grant.session_id)
    assert (session.created_by, session.agent_id, session.client_id) == (ApiKeyId(USER), AGENT, CLIENT)
    assert not session.takes_token(START), "before the code is redeemed"
    [entry] = [each for each in scene.state.audit.values() if each.action is AuditAction.GATEWAY_SESSION_CREATED]
    assert (entry.actor, entry.resource) == (USER, session.id)
    assert entry.details["client_host"] == "client.example"


async def test_nothing_is_granted_without_an_agent_or_by_a_faulty_request(scene: Scene) -> None:
    await scene.with_agent()
    with refused("agent_missing"):
        await scene.grant.execute(GrantAccessCommand(request=asked(resource=None)))
    with refused("invalid_request"):
        await scene.grant.execute(GrantAccessCommand(request=asked(redirect_uri="https://evil.example/")))
    assert not scene.state.client_grants
