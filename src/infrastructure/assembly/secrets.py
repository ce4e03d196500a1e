"""Builds the sources of secrets that are stored elsewhere."""

from application.system.ports import Clock
from infrastructure.http.proxies import Proxies
from infrastructure.secrets.external_secrets import ExternalSecrets, VaultSource
from infrastructure.secrets.file_secrets import FileSecrets
from infrastructure.settings import Settings

_KEEPALIVE_S = 15.0


def external_secrets(settings: Settings, *, proxies: Proxies, clock: Clock) -> ExternalSecrets:
    files = None if settings.secret_files is None else FileSecrets(settings.secret_files)
    return ExternalSecrets(vault=_vault(settings, proxies, clock), files=files)


def _vault(settings: Settings, proxies: Proxies, clock: Clock) -> VaultSource | None:
    if settings.vault_url is None:
        return None
    import httpx

    from infrastructure.http.client import HttpClients
    from infrastructure.secrets.vault_login import AppRoleLogin, KubernetesLogin, VaultLogin
    from infrastructure.secrets.vault_secrets import TIMEOUT_S, VaultPlace, VaultSecrets

    login: VaultLogin | None = None
    if settings.vault_role_id is not None and settings.vault_secret_id is not None:
        secret_id, mount = settings.vault_secret_id.get_secret_value(), settings.vault_login_mount or "approle"
        login = AppRoleLogin(mount=mount, role_id=settings.vault_role_id, secret_id=secret_id)
    elif settings.vault_kubernetes_role is not None:
        login = KubernetesLogin(
            mount=settings.vault_login_mount or "kubernetes",
            role=settings.vault_kubernetes_role,
            token_file=settings.vault_kubernetes_token_file,
        )

    def client() -> httpx.AsyncClient:
        # The operator names the address: it may be inside the network.
        return HttpClients(proxies, ca_file=settings.vault_ca_file).create(
            connect_timeout_s=TIMEOUT_S, read_timeout_s=TIMEOUT_S, max_connections=20, keepalive_s=_KEEPALIVE_S
        )

    return VaultSecrets(
        place=VaultPlace(
            url=settings.vault_url,
            mount=settings.vault_mount,
            prefix=settings.vault_prefix,
            namespace=settings.vault_namespace,
        ),
        token=None if settings.vault_token is None else settings.vault_token.get_secret_value(),
        login=login,
        client=client,
        clock=clock,
        cache_s=settings.vault_cache_s,
    )
