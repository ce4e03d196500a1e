"""RedeemCode: who gets tokens for a code, and what happens to one that comes again."""

from dataclasses import replace

import pytest

from application.gateway.authorization.issued_tokens import ACCESS_LASTS, GRANT_LASTS
from application.gateway.authorization.redeem_code import RedeemCode
from domain.audit.event import AuditAction
from domain.identity.api_key import hash_token
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.ids import IdentityProviderId
from tests.builders import START
from tests.gateway_builders import RESOURCE
from tests.people_builders import USER, a_user
from tests.refusals import refused
from tests.unit.application.gateway.authorization.scene import Scene, redemption

pytestmark = pytest.mark.requirement("P5")


async def test_a_code_gives_a_short_token_of_the_session_and_a_refresh_token(scene: Scene) -> None:
    session_id = scene.with_grant()
    issued = await RedeemCode(grants=scene.grants, tokens=scene.tokens).execute(redemption(resource=RESOURCE))
    session = scene.session(session_id)
    assert issued.access_token.startswith("dgs_")
    assert session.token_hash == hash_token(issued.access_token)
    assert (session.token_expires_at, session.expires_at) == (START + ACCESS_LASTS, START + GRANT_LASTS)
    assert issued.expires_in_s == ACCESS_LASTS.total_seconds()
    assert "dgs_" not in repr(issued)
    assert "dgr_" not in repr(issued)
    scene.access.forget.assert_called_once_with(session_id)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"client_id": "https://other.example/client.json"}, "invalid_grant"),
        ({"code": "dgk_other"}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:1/callback"}, "invalid_grant"),
        ({"verifier": "w" * 43}, "invalid_grant"),
        ({"verifier": ""}, "invalid_grant"),
        ({"resource": "https://dragoman.example/mcp"}, "invalid_target"),
    ],
)
async def test_a_code_is_worth_nothing_to_another_client_or_request(
    scene: Scene, changes: dict[str, str | None], code: str
) -> None:
    session_id = scene.with_grant()
    before = scene.session(session_id)
    with refused(code):
        await scene.redeem.execute(redemption(**changes))
    assert scene.session(session_id) == before
    await scene.redeem.execute(redemption())


async def test_a_code_that_comes_again_revokes_what_it_gave(scene: Scene) -> None:
    session_id = scene.with_grant()
    issued = await scene.redeem.execute(redemption())
    with refused("invalid_grant"):
        await scene.redeem.execute(redemption())
    assert scene.session(session_id).revoked_at == START
    found = await scene.sessions.by_token_hash(hash_token(issued.access_token))
    assert found is not None
    assert not found.takes_token(START)
    [entry] = [each for each in scene.state.audit.values() if each.action is AuditAction.GATEWAY_SESSION_REVOKED]
    assert entry.details == {"reason": "used_twice"}


async def test_a_code_lasts_a_minute(scene: Scene) -> None:
    scene.with_grant()
    scene.clock.advance(60)
    with refused("invalid_grant"):
        await scene.redeem.execute(redemption())


@pytest.mark.parametrize(
    "user",
    [
        a_user(status=UserStatus.DEACTIVATED),
        a_user(role=Role.VIEWER),
        replace(a_user(), provider_id=IdentityProviderId("idp_gone")),
    ],
)
async def test_a_person_who_has_lost_access_meanwhile_gets_no_token(scene: Scene, user: object) -> None:
    scene.with_grant()
    scene.state.users[USER] = user  # type: ignore[assignment]
    with refused("invalid_grant"):
        await scene.redeem.execute(redemption())
