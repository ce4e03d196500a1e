"""The authorization code flow over a loopback address (RFC 8252) with PKCE: a browser on this
machine comes back."""

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlencode, urlsplit

from interfaces.cli.failures import CommandFailure
from interfaces.cli.sign_in.provider import CliProvider, Endpoints, ProviderClient, Tokens

LASTS_S = 600.0
PATH = "/callback"
_READ_S = 10.0
_PAGE = b"<!doctype html><title>Dragoman</title><p>You can close this window, and read on in the terminal.</p>"
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n"
    b"Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n"
    b"Content-Length: " + str(len(_PAGE)).encode() + b"\r\n\r\n" + _PAGE
)
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


async def tokens_by_loopback(
    client: ProviderClient, provider: CliProvider, endpoints: Endpoints, show: Callable[[str], None]
) -> Tokens:
    """Show an address of the provider, and wait until the browser that opened it comes back. Raises
    CommandFailure."""
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = None
        with suppress(TimeoutError, ValueError, OSError):
            line = await asyncio.wait_for(reader.readline(), _READ_S)
            found = _answer_in(line.decode("latin-1"), state)
            writer.write(_NOT_FOUND if found is None else _ANSWER)
            await writer.drain()
        writer.close()
        if found is not None and not answer.done():
            answer.set_result(found)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        redirect_uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
        query = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": redirect_uri,
            "scope": provider.scope,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "prompt": "consent",  # without it, no refresh token (OpenID Connect Core 1.0, section 11)
        }
        separator = "&" if urlsplit(endpoints.authorization_endpoint).query else "?"
        show(f"{endpoints.authorization_endpoint}{separator}{urlencode(query)}")
        try:
            found = await asyncio.wait_for(answer, LASTS_S)
        except TimeoutError as exc:
            raise CommandFailure("No browser came back within ten minutes. Begin again: `dragoman login`.") from exc
    if found.get("iss", endpoints.issuer) != endpoints.issuer:
        raise CommandFailure("The answer comes from another identity provider than was asked.")
    if "code" not in found:
        raise CommandFailure("The sign-in was denied in the browser.")
    form = {
        "grant_type": "authorization_code",
        "code": found["code"],
        "redirect_uri": redirect_uri,
        "client_id": provider.client_id,
        "code_verifier": verifier,
    }
    return await client.tokens(endpoints, form)


def _answer_in(line: str, state: str) -> dict[str, str] | None:
    """The parameters of the provider's redirect; None for other requests, which any page may send
    here."""
    method, _, rest = line.partition(" ")
    target = urlsplit(rest.partition(" ")[0])
    found = {name: values[0] for name, values in parse_qs(target.query).items()}
    is_answer = (
        method == "GET" and target.path == PATH and hmac.compare_digest(found.get("state", "").encode(), state.encode())
    )
    return found if is_answer else None
