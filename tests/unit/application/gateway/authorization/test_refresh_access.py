"""RefreshAccess: tokens follow each other, and one that comes again ends them all."""

from datetime import timedelta

import pytest

from application.gateway.authorization.issued_tokens import GRANT_LASTS, GRANT_LASTS_AT_MOST
from application.gateway.authorization.redeem_code import RedeemCode
from application.gateway.authorization.refresh_access import RefreshAccess
from domain.identity.api_key import hash_token
from domain.identity.user import UserStatus
from tests.builders import START, after
from tests.gateway_builders import RESOURCE
from tests.people_builders import USER, a_user
from tests.refusals import refused
from tests.unit.application.gateway.authorization.scene import Scene, redemption, renewal

pytestmark = pytest.mark.requirement("P5")


async def test_each_refresh_token_gives_the_next_and_replaces_the_access_token(scene: Scene) -> None:
    session_id = scene.with_grant()
    first = await scene.redeem.execute(redemption())
    scene.clock.advance(10)
    refresh = RefreshAccess(grants=scene.grants, tokens=scene.tokens)
    second = await refresh.execute(renewal(first.refresh_token, resource=RESOURCE))
    third = await refresh.execute(renewal(second.refresh_token))
    assert len({first.refresh_token, second.refresh_token, third.refresh_token}) == len((first, second, third))
    session = scene.session(session_id)
    assert session.token_hash == hash_token(third.access_token)
    assert session.expires_at == after(10) + GRANT_LASTS
    assert await scene.sessions.by_token_hash(hash_token(first.access_token)) is None


async def test_a_refresh_token_that_comes_again_revokes_the_grant(scene: Scene) -> None:
    session_id = scene.with_grant()
    first = await scene.redeem.execute(redemption())
    second = await scene.refresh.execute(renewal(first.refresh_token))
    with refused("invalid_grant"):
        await scene.refresh.execute(renewal(first.refresh_token))
    assert scene.session(session_id).revoked_at == START
    with refused("invalid_grant"):
        await scene.refresh.execute(renewal(second.refresh_token))


async def test_a_guess_revokes_nothing(scene: Scene) -> None:
    session_id = scene.with_grant()
    first = await scene.redeem.execute(redemption())
    family, _, rest = first.refresh_token.partition(".")
    for guess in ("", "dgr_", "dgr_.", "dgr_a.b", family, f"{family}.", f"dgs_{rest}", f"dgr_other.{rest}"):
        with refused("invalid_grant"):
            await scene.refresh.execute(renewal(guess))
    with refused("invalid_grant"):
        await scene.refresh.execute(renewal(first.refresh_token, client_id="https://other.example/client.json"))
    with refused("invalid_target"):
        await scene.refresh.execute(renewal(first.refresh_token, resource="https://dragoman.example/mcp"))
    assert scene.session(session_id).revoked_at is None
    await scene.refresh.execute(renewal(first.refresh_token))


async def test_a_grant_that_was_not_renewed_in_time_has_ended(scene: Scene) -> None:
    scene.with_grant()
    first = await scene.redeem.execute(redemption())
    scene.clock.advance(GRANT_LASTS.total_seconds())
    with refused("invalid_grant"):
        await scene.refresh.execute(renewal(first.refresh_token))


async def test_a_grant_ends_90_days_after_the_consent_however_often_it_is_renewed(scene: Scene) -> None:
    session_id = scene.with_grant()
    issued = await scene.redeem.execute(redemption())
    for _ in range(3):
        scene.clock.advance(timedelta(days=29).total_seconds())
        issued = await scene.refresh.execute(renewal(issued.refresh_token))
    assert scene.session(session_id).expires_at == START + GRANT_LASTS_AT_MOST
    scene.clock.advance(timedelta(days=3).total_seconds() - 60)
    issued = await scene.refresh.execute(renewal(issued.refresh_token))
    assert issued.expires_in_s == 60
    assert scene.session(session_id).token_expires_at == START + GRANT_LASTS_AT_MOST
    scene.clock.advance(60)
    with refused("invalid_grant"):
        await scene.refresh.execute(renewal(issued.refresh_token))


async def test_nothing_is_issued_while_another_authorization_server_is_set(scene: Scene) -> None:
    scene.with_grant()
    elsewhere = scene.issuer(external="https://login.example.com")
    with refused("invalid_grant"):
        await RedeemCode(grants=scene.grants, tokens=elsewhere).execute(redemption())
    first = await scene.redeem.execute(redemption())
    with refused("invalid_grant"):
        await RefreshAccess(grants=scene.grants, tokens=elsewhere).execute(renewal(first.refresh_token))
    await scene.refresh.execute(renewal(first.refresh_token))


async def test_a_deactivated_person_gets_no_more_tokens(scene: Scene) -> None:
    scene.with_grant()
    first = await scene.redeem.execute(redemption())
    scene.state.users[USER] = a_user(status=UserStatus.DEACTIVATED)
    with refused("invalid_grant"):
        await scene.refresh.execute(renewal(first.refresh_token))
