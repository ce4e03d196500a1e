"""Signing in to a service and out of it: the order of the steps, and what the person reads."""

import webbrowser
from contextlib import aclosing

from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import path_to
from interfaces.cli.checked_settings import checked_settings
from interfaces.cli.connecting import service_address, stored_sign_ins
from interfaces.cli.failures import ApiProblem, BadUsage, CommandFailure
from interfaces.cli.service_client import ServiceClient
from interfaces.cli.sign_in.device_flow import tokens_by_device
from interfaces.cli.sign_in.loopback_flow import tokens_by_loopback
from interfaces.cli.sign_in.provider import CliProvider, DeviceCode, Endpoints, ProviderClient, Tokens
from interfaces.cli.sign_in.stored import StoredSignIn
from interfaces.cli.terminal import Terminal
from interfaces.http.oauth.views import CliProviderView
from interfaces.http.users.views import CallerView


async def log_in(terminal: Terminal, name: str | None, organization: str | None, *, in_browser: bool) -> None:
    """Sign in with the identity provider of this name, or the only one, and store the tokens.
    Raises CommandFailure."""
    settings = checked_settings()
    if settings.api_key is not None:
        terminal.note("DRAGOMAN_API_KEY is set: commands use that key, not your sign-in.")
    address = await _address()
    client = ProviderClient()
    chosen = _chosen(await _offered(address, organization), name, address)
    endpoints = await client.endpoints(chosen.issuer)
    tokens = await _tokens(terminal, client, chosen, endpoints, in_browser=in_browser)
    try:
        caller = await _caller(address, tokens)
    except CommandFailure:
        await _revoked(client, endpoints, chosen.client_id, tokens.refresh_token)
        raise
    stored = stored_sign_ins(settings)
    async with stored.locked(address):
        stored.store(
            StoredSignIn(
                service=address,
                issuer=chosen.issuer,
                client_id=chosen.client_id,
                id_token=tokens.id_token,
                expires_at=tokens.expires_at,
                refresh_token=tokens.refresh_token,
            )
        )
    person = caller["name"] or caller["id"]
    terminal.note(f"Signed in to {address} as {person}: {caller['role']} of {caller['organization_name']}.")
    if tokens.refresh_token is None:
        terminal.note(f"The identity provider gives no refresh token: sign in again after {caller['expires_at']}.")


async def log_out(terminal: Terminal) -> None:
    """Revoke the tokens at the provider, and delete them here. Raises CommandFailure."""
    address = await _address()
    stored = stored_sign_ins(checked_settings())
    async with stored.locked(address):
        sign_in = stored.of(address)
        if sign_in is None:
            terminal.note(f"You are not signed in to {address}.")
            return
        stored.forget(address)
    client = ProviderClient()
    try:
        endpoints = await client.endpoints(sign_in.issuer)
        revoked = await _revoked(client, endpoints, sign_in.client_id, sign_in.refresh_token)
    except CommandFailure as failure:
        terminal.note(failure.message)
        revoked = False
    terminal.note(f"Signed out of {address}.")
    if not revoked:
        terminal.note("The identity provider revoked nothing: a token that was copied works until it expires.")


async def _address() -> str:
    address = await service_address(checked_settings())
    if address is None:
        raise CommandFailure("No service is running here. Set DRAGOMAN_URL to where it is.")
    return address.rstrip("/")


async def _offered(address: str, organization: str | None) -> list[CliProvider]:
    async with aclosing(ServiceClient(address=address)) as api:
        document = await api.get("/oauth/identity-providers", {"organization": organization} if organization else None)
    return [
        CliProvider(name=view["name"], issuer=view["issuer"], client_id=view["client_id"], scopes=tuple(view["scopes"]))
        for view in entries_of(CliProviderView, document)
    ]


def _chosen(offered: list[CliProvider], name: str | None, address: str) -> CliProvider:
    found = [provider for provider in offered if name in (None, provider.name)]
    if not found:
        hint = "Give --organization ID if the identity provider belongs to your organization."
        what = "no identity provider" if name is None else f"no identity provider {name!r}"
        raise CommandFailure(f"{address} has {what} for the command line. {hint}")
    if len(found) > 1:
        names = ", ".join(provider.name for provider in found)
        raise BadUsage(f"{address} has several identity providers: choose one with --provider ({names}).")
    return found[0]


async def _tokens(
    terminal: Terminal, client: ProviderClient, provider: CliProvider, endpoints: Endpoints, *, in_browser: bool
) -> Tokens:
    def show_code(code: DeviceCode) -> None:
        if code.verification_uri_complete is not None:
            terminal.note(f"Open this in a browser: {code.verification_uri_complete}")
            terminal.note(f"Continue only if it shows this code: {code.user_code}")
        else:
            terminal.note(f"Open this in a browser: {code.verification_uri}")
            terminal.note(f"Enter this code there: {code.user_code}")

    def show_address(url: str) -> None:
        opened = terminal.is_interactive and webbrowser.open(url)
        terminal.note("A browser was opened. If it was not:" if opened else "Open this in a browser on this machine:")
        terminal.note(url)

    if endpoints.device_authorization_endpoint is None or in_browser:
        return await tokens_by_loopback(client, provider, endpoints, show_address)
    return await tokens_by_device(client, provider, endpoints, show_code)


async def _caller(address: str, tokens: Tokens) -> CallerView:
    """Raises CommandFailure if the service does not admit the person."""
    async with aclosing(ServiceClient(address=address, api_key=tokens.id_token)) as api:
        try:
            return read_as(CallerView, await api.get(path_to("whoami")))
        except ApiProblem as problem:
            if problem.code == "sign_in_refused":
                raise problem.with_hint("Ask an admin of your organization.") from problem
            raise


async def _revoked(client: ProviderClient, endpoints: Endpoints, client_id: str, refresh_token: str | None) -> bool:
    return refresh_token is not None and await client.revoke(endpoints, client_id, refresh_token)
