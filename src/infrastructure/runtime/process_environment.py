"""The environment variables of started processes: MCP servers, and the programs that install
them."""

from collections.abc import Mapping

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG")
"""Variables that a stdio server inherits. It gets all others by name (MCP SDK's default, and
LANG)."""
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
"""The operator's configuration of npm, pip and uv: registries, proxies, certificates. Servers do
not get these."""


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    # A value that begins with "()" is an exported shell function.
    return {
        name: value for name in _INHERITED if (value := environ.get(name)) is not None and not value.startswith("()")
    }


def for_installers(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of npm, pip and uv. Proxies and registries may contain the operator's
    credentials; no other variable is secret."""
    given = {
        name: value
        for name, value in environ.items()
        if name in _FOR_INSTALLERS or name.startswith(_FOR_INSTALLERS_PREFIXES)
    }
    return given | inherited(environ)
