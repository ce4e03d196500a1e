"""The permitted Host and Origin headers. They prevent a web page from reaching the gateway under
another name (DNS rebinding; MCP basic/transports, security warning). Pure."""

from collections.abc import Mapping

from interfaces.host_names import FOREIGN_HOST, host_of, is_loopback, names_this_service


def refused_origin(headers: Mapping[str, str], public_url: str | None) -> str | None:
    """Why the request is refused; None if it is allowed.

    - Host must be an address, a name of this machine, or the name in the public URL.
    - Origin, which browsers send, must belong to the public URL, to the Host, or to this machine.
    """
    host = host_of(f"//{headers.get('host', '')}")
    if not names_this_service(host, public_url):
        return FOREIGN_HOST
    origin = headers.get("origin")
    if origin is None:
        return None
    public_host = None if public_url is None else host_of(public_url)
    came_from = host_of(origin)
    if came_from is None or not (is_loopback(came_from) or came_from in (public_host, host)):
        return "Pages of this Origin may not use the gateway."
    return None
