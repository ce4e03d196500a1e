"""Organizations to rows and back; the column `settings` has only set values."""

from typing import Any

from domain.identity.organization import Organization
from infrastructure.persistence.columns.fields import json_fields, row_fields
from infrastructure.persistence.columns.paging import AnyRow

_COLUMNS = ("id", "name", "created_at", "mcp_enabled", "version", "inbox_webhook_secret")
_columns = row_fields(Organization, only=_COLUMNS)
_settings = json_fields(Organization, without=_COLUMNS)


def organization_row(organization: Organization) -> dict[str, Any]:
    return {**_columns.write(organization), "settings": _settings.write_stated(organization)}


def changed_row(organization: Organization) -> dict[str, Any]:
    """The columns that may change."""
    row = organization_row(organization)
    return {name: value for name, value in row.items() if name not in ("id", "created_at")}


def organization_of(row: AnyRow) -> Organization:
    return _columns.of_row(row, **_settings.values(row.settings))
