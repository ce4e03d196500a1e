"""Which variables of our environment started processes get: MCP servers, and the programs that install them."""

from collections.abc import Mapping

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG")
"""What a stdio server may know of our environment; all else it is given by name (MCP SDK's default, and LANG)."""
_FOR_INSTALLERS = (
    *(name for upper in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY") for name in (upper, upper.lower())),
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
)
_FOR_INSTALLERS_PREFIXES = ("PIP_", "UV_", "NPM_CONFIG_", "npm_config_")
"""What npm, pip and uv need to find the registry and trust it, as the operator set them up. Servers do not get these."""


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What a started server gets."""
    # A value that begins with "()" is an exported shell function.
    return {
        name: value for name in _INHERITED if (value := environ.get(name)) is not None and not value.startswith("()")
    }


def for_installers(environ: Mapping[str, str]) -> dict[str, str]:
    """What npm, pip and uv get. Proxies and registries may carry the operator's credentials for them; nothing else of ours is
    secret in it."""
    given = {
        name: value
        for name, value in environ.items()
        if name in _FOR_INSTALLERS or name.startswith(_FOR_INSTALLERS_PREFIXES)
    }
    return given | inherited(environ)
