"""Bodies of the run routes, and their conversion to commands."""

import hashlib
import json
from typing import Annotated, ClassVar, cast

from pydantic import Field

from application.runs.cancel_runs import CancelRunsCommand
from application.runs.resume_run import ClientToolResult
from application.runs.start_run import StartRunCommand
from domain.approvals.decision import CallDecision
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.ids import RunId, ThreadId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.runs.lane import Lane
from domain.runs.run import MultitaskStrategy
from interfaces.http.agents.model_settings import ModelSettingsBody
from interfaces.http.agents.schemas import LimitsBody
from interfaces.http.approvals.schemas import DecisionBody
from interfaces.http.bodies import Body, Name, Strings
from interfaces.http.threads.schemas import RunInput, run_content
from interfaces.http.webhooks.schemas import WebhookField, webhook_of

_EXAMPLE: JsonObject = {"agent": "repository-guide", "input": "What changed in the last three commits?"}


class RunBody(Body):
    """A run of an agent, named by `agent_id` or `agent`. Limits and allowlist can only narrow
    the agent's."""

    examples: ClassVar[tuple[JsonObject, ...]] = (_EXAMPLE,)

    agent_id: Name | None = Field(default=None, description="The agent's id.")
    agent: Name | None = Field(default=None, description="The agent's name.")
    input: RunInput = Field(description="Text, or parts of type text, image, file and source.")
    thread_id: Name | None = Field(default=None, description="The thread of the run. By default it gets a new thread.")
    multitask_strategy: Annotated[MultitaskStrategy, Field(strict=False)] = Field(
        default=MultitaskStrategy.ENQUEUE, description="What happens to an unfinished run of the thread."
    )
    lane: Annotated[Lane, Field(strict=False)] | None = Field(
        default=None,
        description="Place among waiting runs of the organization: `interactive` before `normal` before `batch`, by weight. "
        "By default the agent's; one before the agent's requires the role operator.",
    )
    limits: LimitsBody = Field(
        default_factory=LimitsBody, description="Limits of the run; they can only narrow the agent's."
    )
    model_settings: ModelSettingsBody = Field(
        default_factory=ModelSettingsBody,
        description="Replace the agent's one by one. `extra_body` and `service_tier` require the role operator.",
    )
    output_schema: dict[str, object] | None = Field(
        default=None, description="JSON Schema of the answer, of type object. Replaces the agent's."
    )
    model: Name | None = Field(
        default=None, description="The agent's, one of its fallbacks, or one of the organization's."
    )
    tool_allowlist: Strings | None = Field(
        default=None, description="Tool names or globs; they can only narrow the agent's."
    )
    metadata: dict[str, object] = Field(
        default_factory=dict, description="Data of the client; Dragoman does not use it."
    )
    webhook: WebhookField | None = Field(
        default=None,
        description="Webhook for the end of the run or a required action: a URL, or `{url, secret, events}`.",
    )

    def to_command(
        self,
        principal: Principal,
        thread_id: str | None,
        *,
        idempotency_key: str | None,
        body_digest: str,
        run_id: RunId | None = None,
    ) -> StartRunCommand:
        """`thread_id` is that of the path. Raises INVALID `body_invalid`."""
        thread_id = thread_id or self.thread_id
        if self.thread_id not in (None, thread_id):
            fault = Violation(path="thread_id", message="must be absent, or the thread in the path")
            raise invalid("body_invalid", "The request body is not valid.", fault)
        agent = self.agent_id or self.agent
        if not agent or (self.agent_id and self.agent):
            raise invalid(
                "body_invalid",
                "The request body is not valid.",
                Violation(path="agent", message="give exactly one of agent_id and agent"),
            )
        return StartRunCommand(
            principal=principal,
            agent=agent,
            input=run_content(self.input, "input"),
            thread_id=None if thread_id is None else ThreadId(thread_id),
            strategy=self.multitask_strategy,
            lane=self.lane,
            limits=self.limits.to_domain(),
            model_settings=self.model_settings.to_domain(),
            output_schema=cast("JsonObject | None", self.output_schema),
            model=self.model,
            tool_allowlist=self.tool_allowlist,
            metadata=cast(JsonObject, self.metadata),
            webhook=None if self.webhook is None else webhook_of(self.webhook),
            idempotency_key=idempotency_key,
            body_digest=body_digest,
            run_id=run_id,
        )


class CancelRunsBody(Body):
    """The unfinished runs to cancel: exactly one of agent_id, server and all, narrowed by the
    others."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"agent_id": "repository-guide"},
        {"all": True, "lane": "batch", "queued": True},
    )

    agent_id: Name | None = Field(default=None, description="Id or name of an agent.")
    server: Name | None = Field(
        default=None, description="Id or slug of an MCP server: runs whose agents list it, or that call it now."
    )
    # Not `Literal[True]`: client generators do not support enums of booleans, and skip the route.
    all: bool | None = Field(default=None, description="Every run of the organization: `true`, or absent.")
    lane: Annotated[Lane, Field(strict=False)] | None = Field(default=None, description="Only runs in this lane.")
    queued: bool = Field(default=False, description="Only runs that are queued.")

    def to_command(self, principal: Principal) -> CancelRunsCommand:
        """Raises INVALID `body_invalid`."""
        if self.all is False:
            wrong = Violation(path="all", message="must be true or absent")
            raise invalid("body_invalid", "The request body is not valid.", wrong)
        if len([given for given in (self.agent_id, self.server, self.all) if given is not None]) != 1:
            raise invalid(
                "body_invalid",
                "The request body is not valid.",
                Violation(path="agent_id", message="give exactly one of agent_id, server and all"),
            )
        return CancelRunsCommand(
            principal=principal, agent=self.agent_id, server=self.server, lane=self.lane, queued=self.queued
        )


class ToolResultBody(Body):
    """The result of a client tool: any JSON value. For a call with an `elicitation`: `{action:
    accept | decline | cancel, content}`, where `content` fits the elicitation's schema."""

    tool_call_id: Name = Field(description="Id of the tool call.")
    result: object = Field(description="The result, any JSON value.")
    is_error: bool = Field(default=False, description="Whether the call failed.")


class CallDecisionBody(DecisionBody):
    """A decision about a pending call that requires approval."""

    tool_call_id: Name = Field(description="Id of the tool call.")


class ResumeRunBody(Body):
    """Results and decisions for pending tool calls. All are accepted or none. The run resumes
    once none is pending."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"tool_results": [{"tool_call_id": "call_…", "result": "sent"}]},
        {"approvals": [{"tool_call_id": "call_…", "decision": "approve"}]},
    )

    tool_results: list[ToolResultBody] = Field(
        default_factory=list,
        max_length=1_000,
        description="Results of client tools, and answers to requests of MCP servers.",
    )
    approvals: list[CallDecisionBody] = Field(
        default_factory=list, max_length=1_000, description="Requires the role operator."
    )

    def to_decisions(self) -> tuple[CallDecision, ...]:
        return tuple(
            CallDecision(
                tool_call_id=ToolCallId(given.tool_call_id),
                approve=given.approves,
                arguments=given.edited,
                reason=given.reason,
            )
            for given in self.approvals
        )

    def to_results(self) -> tuple[ClientToolResult, ...]:
        return tuple(
            ClientToolResult(
                tool_call_id=ToolCallId(given.tool_call_id),
                result=cast(JsonValue, given.result),
                is_error=given.is_error,
            )
            for given in self.tool_results
        )


def digest_of(thread_id: str | None, body: JsonValue) -> str:
    """SHA-256 of the thread and the body as canonical JSON: equal requests have equal digests."""
    canonical = json.dumps([thread_id, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
