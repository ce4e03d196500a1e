"""The device authorization grant (RFC 8628): the person confirms a code in any browser."""

import asyncio
from collections.abc import Awaitable, Callable

from interfaces.cli.failures import CommandFailure
from interfaces.cli.sign_in.provider import (
    DEVICE_GRANT,
    CliProvider,
    DeviceCode,
    Endpoints,
    ProviderClient,
    SignInRefused,
    Tokens,
)

_SLOWER_S = 5.0
"""RFC 8628, section 3.5."""
_REFUSALS = {
    "access_denied": "The sign-in was denied in the browser.",
    "expired_token": "The code has expired. Begin again: `dragoman login`.",
}


async def tokens_by_device(
    client: ProviderClient,
    provider: CliProvider,
    endpoints: Endpoints,
    show: Callable[[DeviceCode], None],
    *,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Tokens:
    """Show a code, and wait until the person has confirmed it. Raises CommandFailure."""
    assert endpoints.device_authorization_endpoint is not None
    code = await client.device_code(provider, endpoints.device_authorization_endpoint)
    show(code)
    form = {"grant_type": DEVICE_GRANT, "device_code": code.device_code, "client_id": provider.client_id}
    interval, left = code.interval, code.expires_in
    while left > 0:
        await pause(interval)
        left -= interval
        try:
            return await client.tokens(endpoints, form)
        except SignInRefused as refusal:
            if refusal.code == "slow_down":
                interval += _SLOWER_S
            elif refusal.code != "authorization_pending":
                raise CommandFailure(_REFUSALS.get(refusal.code, refusal.message)) from refusal
    raise CommandFailure(_REFUSALS["expired_token"])
