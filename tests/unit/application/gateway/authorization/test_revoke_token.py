"""RevokeClientToken: what a client gives back."""

import pytest

from application.gateway.authorization.revoke_token import RevokeClientToken, RevokeClientTokenCommand
from tests.builders import START
from tests.gateway_builders import CLIENT
from tests.refusals import refused
from tests.unit.application.gateway.authorization.scene import Scene, redemption, renewal

pytestmark = pytest.mark.requirement("P5")


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
async def test_either_token_ends_the_grant(scene: Scene, which: str) -> None:
    session_id = scene.with_grant()
    issued = await scene.redeem.execute(redemption())
    revoke = RevokeClientToken(grants=scene.grants, tokens=scene.tokens)
    await revoke.execute(RevokeClientTokenCommand(client_id=CLIENT, token=getattr(issued, which)))
    assert scene.session(session_id).revoked_at == START
    with refused("invalid_grant"):
        await scene.refresh.execute(renewal(issued.refresh_token))
    await revoke.execute(RevokeClientTokenCommand(client_id=CLIENT, token=issued.refresh_token))


async def test_unknown_tokens_and_those_of_another_client_change_nothing(scene: Scene) -> None:
    session_id = scene.with_grant()
    issued = await scene.redeem.execute(redemption())
    for client_id, token in (
        (CLIENT, "dgs_unknown"),
        (CLIENT, "dgr_un.known"),
        (CLIENT, "nonsense"),
        ("https://other.example/client.json", issued.access_token),
        ("https://other.example/client.json", issued.refresh_token),
    ):
        await scene.revoke.execute(RevokeClientTokenCommand(client_id=client_id, token=token))
    assert scene.session(session_id).revoked_at is None
