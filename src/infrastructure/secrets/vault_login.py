"""How this service logs in to Vault: a token, AppRole, or the service account of a Kubernetes
pod."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from infrastructure.secrets.external_secrets import SecretUnreadableError


class VaultLogin(Protocol):
    @property
    def path(self) -> str:
        """The path of the login below `/v1`."""
        ...

    async def body(self) -> dict[str, str]:
        """What is sent there. Raises SecretUnreadableError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AppRoleLogin:
    mount: str
    role_id: str
    secret_id: str = field(repr=False)

    @property
    def path(self) -> str:
        return f"auth/{self.mount}/login"

    async def body(self) -> dict[str, str]:
        return {"role_id": self.role_id, "secret_id": self.secret_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesLogin:
    """`token_file` is renewed by the cluster, so each login reads it."""

    mount: str
    role: str
    token_file: Path

    @property
    def path(self) -> str:
        return f"auth/{self.mount}/login"

    async def body(self) -> dict[str, str]:
        try:
            token = await asyncio.to_thread(self.token_file.read_text, encoding="ascii")
        except (OSError, UnicodeDecodeError):
            raise SecretUnreadableError("the token of the service account cannot be read") from None
        return {"role": self.role, "jwt": token.strip()}
