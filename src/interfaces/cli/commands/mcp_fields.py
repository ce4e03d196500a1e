"""Fields of a server from the options of `dragoman mcp add`."""

from pathlib import Path

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.failures import BadUsage


def installed_from(package: str | None, version: str | None, path: Path | None) -> JsonObject:
    """The fields of the installation; a file gets its absolute path, because the service has
    another directory."""
    body: JsonObject = {}
    if package is not None:
        first, space, others = package.partition(" ")
        file = Path(first).expanduser()
        body["package"] = f"{file.absolute()}{space}{others}" if file.is_file() else package
    if version is not None:
        body["version"] = version
    if path is not None:
        body["path"] = str(path.expanduser().absolute())
    return body


def start(command: str | None, arguments: list[str]) -> JsonObject:
    body: JsonObject = {} if command is None else {"command": command}
    args: list[JsonValue] = [*arguments]
    return body | {"args": args} if args or command is not None else body


def reaching(network: str | None, hosts: list[str] | None) -> JsonObject:
    mode = network or ("allowlist" if hosts else None)
    allowed: list[JsonValue] = [*(hosts or ())]
    return {**({"network": mode} if mode else {}), **({"network_hosts": allowed} if allowed else {})}


def tls_of(certificate: Path | None, key_secret: str | None, authorities: Path | None) -> JsonObject:
    """The `tls` from the options, if any."""
    if (certificate is None) != (key_secret is None):
        raise BadUsage("--client-certificate and --client-key-secret belong together.")
    tls: JsonObject = {}
    if certificate is not None:
        tls |= {"certificate": _text_in(certificate), "private_key": {"secret": key_secret}}
    if authorities is not None:
        tls["ca"] = _text_in(authorities)
    return {"tls": tls} if tls else {}


def _text_in(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{file} cannot be read as text.") from error


def rate_limit_of(text: str) -> JsonObject:
    calls, _, per_s = text.partition("/")
    try:
        return {"calls": int(calls), "per_s": float(per_s)}
    except ValueError:
        raise BadUsage("--rate-limit takes CALLS/SECONDS, such as 60/60.") from None
