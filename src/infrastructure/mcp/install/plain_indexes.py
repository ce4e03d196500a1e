"""The operator's package indexes and proxies as variables for pip and uv, without credentials: for
processes that run code of packages. User names, passwords and queries are credentials; tokens in
paths are not recognized. Reads configuration of pip and uv. Above: the confinement of
installers."""

import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_MAX_BYTES = 64 * 1024
_CREDENTIALS = re.compile(r"://[^/\s]*@")
_QUERY = re.compile(r"[?#](?:(?!,(?:[a-z]{1,10}:)?/)\S)*")
"""Up to the next of several addresses."""
_WORD = re.compile(r"\S+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
_OF_PIP = ("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert", "timeout", "retries")
_OF_UV = ("index-url", "extra-index-url", "find-links", "index-strategy", "offline", "native-tls", "system-certs")
_LISTS_WITH_COMMAS = frozenset({"UV_FIND_LINKS"})
_KEPT = frozenset(
    {
        *(f"PIP_{name.upper().replace('-', '_')}" for name in (*_OF_PIP, "default-timeout", "cache-dir")),
        *(f"UV_{name.upper().replace('-', '_')}" for name in (*_OF_UV, "cache-dir", "index", "default-index")),
        *("UV_HTTP_TIMEOUT", "UV_INSECURE_HOST", "UV_NO_INDEX"),
    }
)
"""Variables of pip and uv that hold no credentials but in addresses."""
_INSTALLERS = ("PIP_", "UV_", "NPM_CONFIG_")


def plain_indexes(files: Iterable[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables, from configuration files and from the environment, which comes first. Files
    that cannot be read are left out."""
    found: dict[str, str] = {}
    for file in files:
        found |= {name: _without_credentials(value) for name, value in _settings_in(file)}
    given = {name: value for name, value in environment.items() if name in _KEPT}
    return found | {name: _without_credentials(value) for name, value in given.items()}


def plain_proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of proxies, also of those that are named without a scheme."""
    return {name: _without_user(value) for name, value in environment.items() if name.upper() in _PROXIES}


def installer_variables(environment: Mapping[str, str]) -> frozenset[str]:
    """The names of the variables that configure installers."""
    return frozenset(name for name in environment if name.upper().startswith(_INSTALLERS))


def _settings_in(file: Path) -> Iterator[tuple[str, str]]:
    try:
        with file.open("rb") as opened:
            text = opened.read(_MAX_BYTES).decode(errors="replace")
        yield from _of_uv(tomllib.loads(text)) if file.suffix == ".toml" else _of_pip(text)
    except (OSError, tomllib.TOMLDecodeError, configparser.Error):
        return


def _of_pip(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    for section in ("global", "install"):
        for name in _OF_PIP:
            value = parser.get(section, name, fallback=None)
            if value is not None:
                yield f"PIP_{name.upper().replace('-', '_')}", " ".join(value.split())


def _of_uv(stated: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    of_pip = stated.get("pip")
    for table in (stated, of_pip if isinstance(of_pip, dict) else {}):
        for name in _OF_UV:
            if name in table:
                variable = f"UV_{name.upper().replace('-', '_')}"
                yield variable, _text(table[name], "," if variable in _LISTS_WITH_COMMAS else " ")
    indexes = [index for index in _dictionaries(stated.get("index")) if isinstance(index.get("url"), str)]
    named = [f"{index['name']}={index['url']}" if "name" in index else index["url"] for index in indexes]
    by_rank = {False: "UV_INDEX", True: "UV_DEFAULT_INDEX"}
    for is_default, variable in by_rank.items():
        chosen = [
            text for index, text in zip(indexes, named, strict=True) if (index.get("default") is True) is is_default
        ]
        if chosen:
            yield variable, " ".join(chosen)


def _dictionaries(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: object, separator: str) -> str:
    if isinstance(value, list):
        return separator.join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _without_credentials(text: str) -> str:
    return _WORD.sub(lambda word: _plain(word[0]), text)


def _plain(word: str) -> str:
    return _QUERY.sub("", _CREDENTIALS.sub("://", word)) if "://" in word else word


def _without_user(proxy: str) -> str:
    user, _, address = proxy.rpartition("@")
    scheme = _SCHEME.match(user)
    return f"{scheme[0]}{address}" if scheme is not None else address
