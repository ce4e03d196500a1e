"""Admin keys of organizations, created by platform keys."""

from datetime import datetime

from application.identity.create_api_key import CreatedApiKey
from application.system.ports import IdSource
from domain.identity.api_key import ApiKey, hash_token
from domain.identity.role import Role
from domain.ids import ApiKeyId, OrganizationId


def new_admin_key(organization_id: OrganizationId, name: str, *, ids: IdSource, at: datetime) -> CreatedApiKey:
    """A new key with the role admin and without platform rights, and its token."""
    token = ids.new_token()
    key = ApiKey(
        id=ApiKeyId(ids.new("key")),
        organization_id=organization_id,
        name=name,
        role=Role.ADMIN,
        platform=False,
        token_hash=hash_token(token),
        created_at=at,
    )
    return CreatedApiKey(key=key, token=token)
