"""Body of the API key routes."""

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import AfterValidator, AwareDatetime, Field

from domain.identity.role import Role
from domain.json_value import JsonObject
from interfaces.http.api_keys.views import ApiKeyView
from interfaces.http.bodies import Body, Name
from interfaces.http.rates import RateLimitBody


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is after the year 9999 in UTC") from None


class CreateApiKeyBody(Body):
    """A key: `viewer` reads, `runner` also starts runs, `operator` also connects servers,
    `admin` changes everything. A `custom_role` is in place of the role."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "ci", "role": "runner"},)

    shown_as: ClassVar[type] = ApiKeyView

    name: Name
    role: Annotated[Role, Field(strict=False)] = Role.VIEWER
    custom_role: Name | None = None
    expires_at: Annotated[AwareDatetime, Field(strict=False), AfterValidator(_in_utc)] | None = Field(
        default=None, description="RFC 3339; the key is rejected from then on. Absent or null: never."
    )
    rate_limit: RateLimitBody | None = Field(
        default=None, description="Further requests are rejected with 429. The service's own limit applies as well."
    )
    platform: bool = Field(
        default=False, description="Whether the key also manages organizations. Requires a platform key."
    )
