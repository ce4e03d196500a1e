"""`/metrics`: metrics of this process, and the backlog of the whole system, in Prometheus
format."""

import hmac
from typing import Annotated

from litestar import MediaType, Response, Router, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter

from application.metrics.ports import MetricsPage
from domain.errors import ErrorKind, ServiceError
from infrastructure.container import Container
from interfaces.http.health import TAG
from interfaces.http.problems import described_problems

_PAGE = ResponseSpec(
    data_container=str,
    description="Metrics in Prometheus' text format. No label names an organization, an agent, or a server.",
    media_type=MediaType.TEXT,
    generate_examples=False,
)


class Monitoring:
    """The metrics page and its token; with None it needs no token."""

    def __init__(self, *, page: MetricsPage, token: str | None) -> None:
        self._page = page
        self._token = token

    async def shown(self, authorization: str | None) -> Response[bytes]:
        """The page. Raises UNAUTHENTICATED `metrics_token_required`."""
        if self._token is not None:
            scheme, _, given = (authorization or "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                raise ServiceError(
                    "metrics_token_required",
                    ErrorKind.UNAUTHENTICATED,
                    "Send the token in DRAGOMAN_METRICS_TOKEN as a bearer token.",
                )
        return Response(await self._page.render(), media_type=self._page.media_type)


def monitoring(container: Container) -> Monitoring:
    token = container.settings().metrics_token
    return Monitoring(page=container.metrics_page(), token=None if token is None else token.get_secret_value())


@get("/metrics", summary="Read the metrics", responses={200: _PAGE, **described_problems(400, 401)})
async def read_metrics(
    monitoring: NamedDependency[Monitoring],
    authorization: Annotated[
        str | None, HeaderParameter(name="Authorization", description="The token of the metrics, if there is one.")
    ] = None,
) -> Response[bytes]:
    """Counters and histograms cover this process since its start. Gauges of stored, unfinished
    work are the same from every process."""
    return await monitoring.shown(authorization)


def metrics_router() -> Router:
    return Router("/", route_handlers=[read_metrics], tags=[TAG.name])
