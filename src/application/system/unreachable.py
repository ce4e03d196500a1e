"""Why no connection to a host came about, for people: told from the system's own errors, never from
their texts."""

import socket
import ssl
from collections.abc import Iterator

_NO_SUCH_HOST = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})

_OF_CERTIFICATES = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
"""In OpenSSL's names of alerts (RFC 8446, section 6.2)."""


def cause_of(error: BaseException) -> str:
    """The cause in words that continue "cannot be reached:"."""
    causes = tuple(_chain(error))
    for cause in causes:
        match cause:
            case socket.gaierror():
                return "no host has this name" if cause.errno in _NO_SUCH_HOST else "its name cannot be looked up now"
            case ssl.SSLCertVerificationError():
                return "its TLS certificate is not trusted"
            case ssl.SSLError() if is_tls_alert(cause):
                return "it refuses the client certificate, or requires one"
            case ssl.SSLError():
                return "it does not speak TLS at this port"
            case ConnectionRefusedError():
                return "nothing accepts connections at this port"
            case _:
                continue
    return "it does not answer" if any(isinstance(cause, TimeoutError) for cause in causes) else "no connection"


def is_tls_alert(error: BaseException) -> bool:
    """Whether the other side ended TLS because of a certificate of this side."""
    reason = str(getattr(error, "reason", "")) if isinstance(error, ssl.SSLError) else ""
    return "ALERT" in reason and any(word in reason for word in _OF_CERTIFICATES)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
