"""Body of the API key routes."""

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import AfterValidator, AwareDatetime, Field

from domain.identity.role import Role
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name
from interfaces.http.rates import RateLimitBody


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies beyond the year 9999 in UTC") from None


class CreateApiKeyBody(Body):
    """A key: `viewer` reads, `runner` also starts runs, `operator` also connects servers, `admin` changes all."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "ci", "role": "runner"},)

    name: Name
    role: Annotated[Role, Field(strict=False)]
    expires_at: Annotated[AwareDatetime, Field(strict=False), AfterValidator(_in_utc)] | None = Field(
        default=None, description="RFC 3339; from then on the key is refused. Absent or null: never."
    )
    rate_limit: RateLimitBody | None = Field(
        default=None, description="Requests beyond it are refused with 429. The service's own limit holds beside it."
    )
    platform: bool = Field(default=False, description="Whether it manages organizations too; takes a platform key.")
