"""Routes of `/ag-ui/v1`. They are not in the OpenAPI document: their shapes are AG-UI's."""

from typing import Annotated

from litestar import post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter
from litestar.response.base import ASGIResponse

from interfaces.http.ag_ui.runs import AgUiRuns
from interfaces.http.ag_ui.schemas import RunAgentInputBody
from interfaces.http.paths import AgentPath
from interfaces.http.requests import ApiRequest

ClientThreadPath = Annotated[str, PathParameter(description="The client's id of a thread, or the id of a thread.")]


@post("/{agent:str}", status_code=200)
async def run_agent(
    request: ApiRequest, agent: AgentPath, data: JSONBody[RunAgentInputBody], ag_ui_runs: NamedDependency[AgUiRuns]
) -> ASGIResponse:
    """Requires the role runner."""
    return await ag_ui_runs.run(request.principal, agent, data)


@post("/{agent:str}/connect", status_code=200)
async def connect_agent(
    request: ApiRequest, agent: AgentPath, data: JSONBody[RunAgentInputBody], ag_ui_runs: NamedDependency[AgUiRuns]
) -> ASGIResponse:
    """The thread with its newest run, from the beginning."""
    return await ag_ui_runs.connect(request.principal, agent, data)


@post("/{agent:str}/threads/{thread:str}/stop", status_code=204)
async def stop_agent(
    request: ApiRequest, agent: AgentPath, thread: ClientThreadPath, ag_ui_runs: NamedDependency[AgUiRuns]
) -> None:
    """Cancels the run. A runner cancels its own, an operator any."""
    await ag_ui_runs.stop(request.principal, agent, thread)
