"""Assertions by which Dragoman proves itself to an authorization server (private_key_jwt; RFC 7523,
section 2.2)."""

from collections.abc import Collection
from datetime import datetime, timedelta
from secrets import token_urlsafe

import jwt

from infrastructure.identity.private_keys import UnusableKeyError
from infrastructure.identity.signing_keys import read_signing_key
from infrastructure.mcp.faults import TransportFailedError, auth_fault

_LASTS = timedelta(minutes=1)


def client_assertion(
    pem: str, *, client_id: str, key_id: str | None, issuer: str, offered: Collection[str] | None, now: datetime
) -> str:
    """A new assertion for the authorization server `issuer`, valid for a minute. `offered` are the
    algorithms that it lists, None if it lists none. Raises TransportFailedError for a key that
    cannot sign it."""
    try:
        key = read_signing_key(pem.encode())
    except UnusableKeyError as error:
        raise TransportFailedError(auth_fault(f"The private key of the server's auth {error.reason}.")) from error
    algorithm = next((each for each in key.algorithms if offered is None or each in offered), None)
    if algorithm is None:
        detail = f"The authorization server takes no assertions signed with {' or '.join(key.algorithms)}."
        raise TransportFailedError(auth_fault(detail))
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,
        "iat": now,
        "exp": now + _LASTS,
        "jti": token_urlsafe(16),
    }
    return jwt.encode(claims, key.private, algorithm=algorithm, headers=None if key_id is None else {"kid": key_id})
