"""Secrets outside the database, by the form of their reference: Vault and mounted files.

Above: the store of secrets, which answers for all references. Below: a source for each form.
"""

from typing import Protocol

from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId
from domain.secrets.secret import SECRET_UNAVAILABLE, ExternalReference, FileReference, VaultReference


class VaultSource(Protocol):
    async def value(self, organization_id: OrganizationId, reference: VaultReference) -> str | None: ...

    def forget(self, organization_id: OrganizationId) -> None: ...

    async def close(self) -> None: ...


class FileSource(Protocol):
    async def value(self, organization_id: OrganizationId, reference: FileReference) -> str | None: ...


class SecretUnreadableError(Exception):
    """The secret cannot be read. `reason` ends a sentence, and has no value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ExternalSecrets:
    """Reads the sources that the operator has set up."""

    def __init__(self, *, vault: VaultSource | None, files: FileSource | None) -> None:
        self._vault = vault
        self._files = files

    async def value(self, organization_id: OrganizationId, name: str, reference: ExternalReference) -> str | None:
        """The value; None if there is no such secret. Raises UNAVAILABLE `secret_unavailable`,
        which names the reference."""
        try:
            if isinstance(reference, FileReference):
                if self._files is None:
                    raise SecretUnreadableError("files of secrets are not set up (DRAGOMAN_SECRET_FILES)")
                return await self._files.value(organization_id, reference)
            if self._vault is None:
                raise SecretUnreadableError("Vault is not set up (DRAGOMAN_VAULT_URL)")
            return await self._vault.value(organization_id, reference)
        except SecretUnreadableError as error:
            detail = f"The secret {name!r} cannot be read: {error.reason}."
            raise ServiceError(SECRET_UNAVAILABLE, ErrorKind.UNAVAILABLE, detail) from error

    def forget(self, organization_id: OrganizationId) -> None:
        """Read values of the organization again: one was refused."""
        if self._vault is not None:
            self._vault.forget(organization_id)

    async def close(self) -> None:
        if self._vault is not None:
            await self._vault.close()
