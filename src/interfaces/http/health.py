"""Health: `live` means that the process responds, `ready` that it can work. Neither requires a
key."""

from typing import Literal, TypedDict

from litestar import Response, Router, get
from litestar.di import NamedDependency

from application.system.readiness import ProcessReadiness
from domain.errors import Violation
from interfaces.http.problems import described_problems, problem


class HealthView(TypedDict):
    """The process is healthy."""

    status: Literal["live", "ready"]


@get("/health/live", summary="Is the process alive?", sync_to_thread=False)
def live() -> HealthView:
    """Always 200."""
    return {"status": "live"}


@get("/health/ready", summary="Can the process serve?", responses=described_problems(503))
async def ready(readiness: NamedDependency[ProcessReadiness]) -> HealthView | Response[dict[str, object]]:
    """503 if not ready; `errors` lists each missing part as a `path`: `database`, `migrations`,
    `queue`, `worker`, `stopping`."""
    missing = await readiness.problems()
    if missing:
        parts = ", ".join(obstacle.part for obstacle in missing)
        faults = tuple(Violation(path=obstacle.part, message=obstacle.detail) for obstacle in missing)
        return problem(503, "not_ready", f"Not ready: {parts}.", violations=faults)
    return {"status": "ready"}


def health_router() -> Router:
    return Router("/", route_handlers=[live, ready], tags=["health"])
