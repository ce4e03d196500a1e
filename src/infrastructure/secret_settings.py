"""Settings of secrets that are stored elsewhere: in Vault, and in mounted files."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from infrastructure.runtime import setting_values as values

_PATH = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$"
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class SecretSettings(BaseModel):
    """Part of `Settings`."""

    model_config = ConfigDict(extra="ignore", frozen=True, validate_default=True, defer_build=True)

    secret_files: Annotated[Path, AfterValidator(values.absolute)] | None = Field(
        default=None, description="a directory", examples=["/run/secrets/dragoman"]
    )
    vault_url: values.HttpUrl | None = Field(
        default=None, description="an http or https URL", examples=["https://vault.internal:8200"]
    )
    vault_namespace: str | None = Field(
        default=None, pattern=r"^[\x21-\x7e]+$", description="a namespace", examples=["teams/a"]
    )
    vault_mount: str = Field(default="secret", pattern=_PATH, description="a path", examples=["kv"])
    vault_prefix: Annotated[str, AfterValidator(values.organization_path)] = Field(
        default="dragoman/{organization}",
        description="a path with {organization}",
        examples=["teams/{organization}/dragoman"],
    )
    vault_token: SecretStr | None = Field(default=None, description="a token of Vault", examples=["hvs.…"])
    vault_role_id: str | None = Field(default=None, description="the role id of an AppRole", examples=["1b2c…"])
    vault_secret_id: SecretStr | None = Field(
        default=None, description="the secret id of that AppRole", examples=["9f8e…"]
    )
    vault_kubernetes_role: str | None = Field(default=None, description="a role of Vault", examples=["dragoman"])
    vault_kubernetes_token_file: Annotated[Path, AfterValidator(values.absolute)] = Field(
        default=_SERVICE_ACCOUNT, description="a file", examples=[str(_SERVICE_ACCOUNT)]
    )
    vault_login_mount: str | None = Field(default=None, pattern=_PATH, description="a path", examples=["kubernetes-eu"])
    vault_ca_file: Annotated[Path, AfterValidator(values.certificates)] | None = Field(
        default=None, description="a readable file of certificates in PEM", examples=["/etc/dragoman/vault-ca.pem"]
    )
    vault_cache_s: float = Field(default=60.0, ge=0, le=86_400, description="0 to 86400 seconds", examples=["300"])

    @property
    def lacks_vault_login(self) -> bool:
        """Whether Vault is named without one way to log in."""
        given = (self.vault_token, self.vault_role_id and self.vault_secret_id, self.vault_kubernetes_role)
        return self.vault_url is not None and sum(each is not None for each in given) != 1
