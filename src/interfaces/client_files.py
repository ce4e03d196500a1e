"""Files of desktop clients and editors that list MCP servers: JSON, with comments and trailing
commas in some."""

import re

from domain.json_value import JsonObject, JsonValue

_NAMES = ("mcpServers", "servers", "context_servers")
"""Where clients list their servers: most of them, VS Code, Zed."""
_NEXT = re.compile(r'"|//|/\*')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_LAST_COMMA = re.compile(r",(?=\s*[\]}])")
_SHOWN = re.compile(r"[^\n]")


def plain_json(text: str) -> str:
    """The text with spaces in place of comments and trailing commas, so that every position
    stays."""
    outside: list[str] = []
    strings: list[str] = []
    part: list[str] = []
    at = 0
    while (found := _NEXT.search(text, at)) is not None:
        part.append(text[at : found.start()])
        if found.group() == '"':
            string = _STRING.match(text, found.start())
            assert string is not None  # it begins with a quote
            outside.append("".join(part))
            strings.append(string.group())
            part, at = [], string.end()
        else:
            end = text.find("\n" if found.group() == "//" else "*/", found.end())
            at = len(text) if end < 0 else end + 2 * (found.group() == "/*")
            part.append(_SHOWN.sub(" ", text[found.start() : at]))
    outside.append("".join([*part, text[at:]]))
    strings.append("")
    return "".join(_LAST_COMMA.sub(" ", other) + string for other, string in zip(outside, strings, strict=True))


def listed_servers(document: JsonValue) -> JsonObject | None:
    """The servers of a file, by name; None if it lists none."""
    if not isinstance(document, dict):
        return None
    found = (document.get(name) for name in _NAMES)
    return next((servers for servers in found if isinstance(servers, dict)), None)
