"""Detects literal secrets in a server's command, arguments and URL, by their names and forms; they
are rejected before storage."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from domain.errors import Violation, invalid
from domain.mcp.server import McpServerConfig
from domain.secrets.names import is_secret_name, references_in, words_of

_PLACEHOLDER = re.compile(r"\$\{[^{}]+\}|\$[A-Za-z_]\w*|%\w+%|<[^<>]+>")
_SECRET_IN_QUERIES = frozenset({"auth", "code", "key", "pass", "pwd", "sig", "signature"})
_ABOUT_SECRETS = frozenset(
    {"count", "dir", "endpoint", "env", "file", "id", "length", "limit", "name", "path", "type", "uri", "url"}
)
"""A name with one of these words does not name a secret: `--token-file`, `--secret-name`."""
_OPTION = re.compile(r"-{0,2}([A-Za-z][\w.-]*)=(.+)", re.DOTALL)
_HEADER = re.compile(r"([A-Za-z][\w-]*):\s*(\S.*)", re.DOTALL)
_FORMS = re.compile(
    r"\b(?:dgm_|sk-|sk_live_|rk_live_|ghp_|gho_|ghs_|github_pat_|glpat-|hf_|npm_|pypi-|xox[abprs]-|whsec_)[\w+/=-]{12,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{8,1000}\.eyJ[\w-]{8,1000}\.|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?i:\b(?:bearer|basic))\s+[\w+/=.~-]{8,}"
)
_IN_ARGS = 'holds a secret in clear, and arguments are no place for one: put it into env, as {"secret": NAME}'
_IN_COMMAND = 'holds a secret in clear: name only the program, and put the secret into env, as {"secret": NAME}'
_IN_URL = (
    'holds a secret in clear: put it into headers or auth, as {"secret": NAME}, or write ${secret:NAME} in its place'
)


def require_no_literal_secrets(config: McpServerConfig, stored: McpServerConfig | None = None) -> None:
    """Reject literal secrets that are not already in `stored`. Raises INVALID
    `mcp_server_invalid`."""
    wrong = []
    if stored is None or config.command != stored.command:
        wrong += literal_secrets_in_command(config.command)
    if stored is None or config.args != stored.args:
        wrong += literal_secrets_in_args(config.args)
    if config.url is not None and (stored is None or config.url != stored.url):
        wrong += literal_secrets_in_url(config.url)
    if wrong:
        raise invalid("mcp_server_invalid", "The MCP server is not valid.", *wrong)


def literal_secrets_in_command(command: str | None) -> list[Violation]:
    """Violations for a command with a secret in one of its words. It is one program, but people
    paste whole command lines."""
    found = command is not None and any(True for _ in _secret_args(command.split()))
    return [Violation(path="command", message=_IN_COMMAND)] if found else []


def literal_secrets_in_args(args: Sequence[str]) -> list[Violation]:
    """Violations for arguments that are secrets or values of secret options. Texts never repeat a
    value."""
    return [Violation(path=f"args.{number}", message=_IN_ARGS) for number in sorted(set(_secret_args(args)))]


def literal_secrets_in_url(url: str) -> list[Violation]:
    """Violations for secrets in a URL, and for references outside path and query."""
    parts = urlsplit(url)
    if references_in(parts.scheme + parts.netloc):
        return [Violation(path="url", message="may refer to secrets in its path and its query only")]
    return [Violation(path="url", message=_IN_URL)] if _url_holds_secret(url) else []


def _secret_args(args: Sequence[str]) -> Iterator[int]:
    for number, arg in enumerate(args):
        following = args[number + 1] if number + 1 < len(args) else ""
        if _holds_secret(arg):
            yield number
        elif arg.startswith("-") and "=" not in arg and _names_secret(arg) and not following.startswith("-"):
            yield from (number + 1,) if _is_literal(following) else ()


def _holds_secret(arg: str) -> bool:
    if _FORMS.search(arg) or ("://" in arg and _url_holds_secret(arg)):
        return True
    named = _OPTION.fullmatch(arg) or _HEADER.fullmatch(arg)
    return named is not None and _names_secret(named[1]) and _is_literal(named[2])


def _url_holds_secret(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_password = bool(parts.password) and _is_literal(parts.password or "")
    except ValueError:
        return False
    if has_password or _FORMS.search(unquote(url)):
        return True
    pairs = parse_qsl(parts.query) + parse_qsl(parts.fragment)
    return any(
        (_names_secret(name) or name.lower() in _SECRET_IN_QUERIES) and _is_literal(value) for name, value in pairs
    )


def _names_secret(name: str) -> bool:
    return is_secret_name(name) and _ABOUT_SECRETS.isdisjoint(words_of(name))


def _is_literal(value: str) -> bool:
    """Whether the value has a literal part besides references."""
    return bool(_PLACEHOLDER.sub("", value).strip().removeprefix("Bearer").strip())
