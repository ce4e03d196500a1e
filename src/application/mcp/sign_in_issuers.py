"""Which sign-ins a server with token exchange takes."""

from urllib.parse import urlsplit

from domain.mcp.auth import TokenExchangeAuth


def takes_sign_in_with(auth: TokenExchangeAuth, issuer: str) -> bool:
    """Whether a token of this identity provider may go to `auth.issuer`, which must be at its
    origin."""
    return auth.issuer is None or origin_of(auth.issuer) == origin_of(issuer)


def origin_of(url: str) -> tuple[str, str]:
    """Scheme and authority, to compare; what is no URL is an origin for itself."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    return parts.scheme, parts.netloc.lower()
