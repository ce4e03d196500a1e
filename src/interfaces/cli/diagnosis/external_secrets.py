"""Checks of the places where secrets are stored elsewhere: the directory of files, and Vault."""

import os
import ssl
from collections.abc import Iterator

import httpx

from infrastructure.settings import Settings
from interfaces.cli.diagnosis.finding import Finding, problem, well
from interfaces.cli.diagnosis.reach import PATIENCE_S, shown_address

_SEALED = 503


async def external_secret_findings(settings: Settings, *, client: httpx.AsyncClient | None = None) -> list[Finding]:
    """Nothing without such a place. No secret is read."""
    findings = list(_files(settings))
    if settings.vault_url is not None:
        ca_file = settings.vault_ca_file
        try:
            verify = True if ca_file is None else ssl.create_default_context(cafile=str(ca_file))
        except OSError:
            said = f"{ca_file} has no readable certificates"
            return [*findings, problem("vault", said, "Mount it, or correct DRAGOMAN_VAULT_CA_FILE.")]
        async with client or httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False, verify=verify) as opened:
            findings.append(await _vault(opened, settings.vault_url))
    return findings


def _files(settings: Settings) -> Iterator[Finding]:
    check, directory = "secret files", settings.secret_files
    if directory is None:
        return
    if os.access(directory, os.R_OK | os.X_OK) and directory.is_dir():
        yield well(check, f"{directory} can be read")
    else:
        yield problem(check, f"{directory} is not a readable directory", "Mount it, or correct DRAGOMAN_SECRET_FILES.")


async def _vault(client: httpx.AsyncClient, url: str) -> Finding:
    check, shown = "vault", shown_address(url)
    try:
        answer = await client.get(f"{url}/v1/sys/health", params={"standbyok": "true"})
    except (httpx.HTTPError, httpx.InvalidURL):
        return problem(check, f"{shown} does not answer", "Check DRAGOMAN_VAULT_URL and DRAGOMAN_VAULT_CA_FILE.")
    if answer.status_code == _SEALED:
        return problem(check, f"{shown} is sealed", "Unseal it: what refers to it cannot connect.")
    return well(check, f"{shown} answers")
