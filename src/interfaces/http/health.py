"""Health: `live` says that the process answers, `ready` that it can do its work. Neither needs a key."""

from typing import Literal, TypedDict

from litestar import Response, Router, get
from litestar.di import NamedDependency

from application.system.readiness import ProcessReadiness
from domain.errors import Violation
from interfaces.http.problems import described_problems, problem


class HealthView(TypedDict):
    """All is well."""

    status: Literal["live", "ready"]


@get("/health/live", summary="Is the process alive?", sync_to_thread=False)
def live() -> HealthView:
    """Always, if it can answer."""
    return {"status": "live"}


@get("/health/ready", summary="Can the process serve?", responses=described_problems(503))
async def ready(readiness: NamedDependency[ProcessReadiness]) -> HealthView | Response[dict[str, object]]:
    """503 if not, with each part that is missing as the `path` of an entry in `errors`: `database`, `migrations`, `queue`,
    `worker`, `stopping`."""
    missing = await readiness.problems()
    if missing:
        parts = ", ".join(obstacle.part for obstacle in missing)
        faults = tuple(Violation(path=obstacle.part, message=obstacle.detail) for obstacle in missing)
        return problem(503, "not_ready", f"Not ready: {parts}.", violations=faults)
    return {"status": "ready"}


def health_router() -> Router:
    """The routes of health."""
    return Router("/", route_handlers=[live, ready], tags=["health"])
