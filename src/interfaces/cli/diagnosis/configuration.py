"""Checks of settings that are valid but risky."""

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path

from infrastructure.settings import Settings
from interfaces.cli.diagnosis.finding import Finding, problem, warning, well

GOOD_SECRET_KEY = 32
"""Characters of a key made by `openssl rand -base64 24` or longer."""
_METADATA = ipaddress.ip_address("169.254.169.254")
"""Addresses where clouds serve a machine's credentials."""


def configuration_findings(settings: Settings) -> Iterator[Finding]:
    """The encryption key, egress, and what others can reach."""
    yield _secret_key_finding(settings)
    yield egress_finding(settings.egress_allowed)
    if settings.archive_dir is not None:
        yield archive_finding(settings.archive_dir)
    yield from _open_findings(settings)


def _secret_key_finding(settings: Settings) -> Finding:
    check = "secret key"
    if not settings.secret_keys:
        path = settings.home / "secret.key"
        if secret_key_is_lost(settings):
            return problem(
                check,
                f"{path} is missing, though there is a database",
                "Restore it from the backup: the next start creates a new key, which cannot decrypt stored values.",
            )
        return well(check, f"kept in {path}")
    if any(len(key) < GOOD_SECRET_KEY for key in settings.secret_keys):
        return warning(
            check,
            f"DRAGOMAN_SECRET_KEY holds a key of fewer than {GOOD_SECRET_KEY} characters",
            "Put a longer one before it (`openssl rand -base64 32`) and run `dragoman secret rotate`.",
        )
    held = len(settings.secret_keys)
    return well(check, "from DRAGOMAN_SECRET_KEY" if held == 1 else f"from DRAGOMAN_SECRET_KEY, with {held - 1} older")


def secret_key_is_lost(settings: Settings) -> bool:
    """Whether a database exists without its key file. Opening HOME would then create another
    key."""
    database = settings.database_path or settings.home / "dragoman.db"
    given = settings.secret_keys or settings.postgres_url is not None
    return not given and database.exists() and not (settings.home / "secret.key").exists()


def archive_finding(directory: Path) -> Finding:
    """Whether retention can write there before it removes audit entries and runs."""
    if directory.is_dir() and os.access(directory, os.W_OK | os.X_OK):
        return well("archive", f"audit entries, runs and gateway calls go to {directory} before retention removes them")
    return problem(
        "archive",
        f"{directory} is not a directory that this user may write to",
        "Create it, or correct DRAGOMAN_ARCHIVE_DIR: until then retention removes no audit entries, runs and gateway calls.",
    )


def egress_finding(allowed: tuple[str, ...]) -> Finding:
    """Private addresses that tools, servers and webhooks may reach."""
    if not allowed:
        return well("egress", "public addresses only")
    for entry in allowed:
        try:
            network = ipaddress.ip_network(entry, strict=False)
        except ValueError:
            continue  # a host name
        if network.version == _METADATA.version and _METADATA in network:
            return warning(
                "egress",
                f"DRAGOMAN_EGRESS_ALLOW holds {entry}, and with it {_METADATA}, where clouds serve credentials",
                "Name only the networks and hosts that agents need.",
            )
        if network.prefixlen == 0:
            return warning("egress", f"DRAGOMAN_EGRESS_ALLOW holds {entry}: everything", "Name only what agents need.")
    return well("egress", f"public addresses, and {', '.join(allowed)}")


def _open_findings(settings: Settings) -> Iterator[Finding]:
    if settings.host in ("localhost", "::1") or settings.host.startswith("127."):
        return
    if settings.public_url is None:
        yield warning(
            "address",
            f"the service listens on {settings.host}, and DRAGOMAN_PUBLIC_URL is not set",
            "Set it to the address that others use: links, OAuth redirects and gateway URLs begin with it.",
        )
    elif settings.public_url.startswith("http:"):
        yield warning(
            "address", f"{settings.public_url} is not encrypted", "Put a proxy with TLS in front; API keys go over it."
        )
    if settings.metrics_token is None:
        yield warning(
            "metrics",
            f"/metrics is shown to everyone who reaches {settings.host}",
            "Set DRAGOMAN_METRICS_TOKEN, or keep the path from others in the proxy in front.",
        )
