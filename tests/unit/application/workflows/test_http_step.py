"""HTTP requests as steps: how they are filled in, what comes back, and what never does."""

import json
from dataclasses import dataclass, field

import pytest

from application.workflows.http_request import HttpAnswer, HttpCall, HttpCallFailed, HttpRequests
from application.workflows.http_step import BoundInputs, HttpStep
from application.workflows.node_execution import NodeContext, NodeFailed, Succeeded
from domain.ids import RunId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue
from domain.secrets.secret import Secret
from domain.workflows.execution import NodeRun, NodeStatus
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from tests.builders import KEY, ORG, START, an_audit_event
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.workflow_builders import entrypoint, node, planned

TOKEN = 'tok"en-nobody-sees'


@dataclass
class Server:
    """Answers as it is told, and keeps what it was asked."""

    answer: HttpAnswer | HttpCallFailed = field(
        default_factory=lambda: HttpAnswer(status=200, media_type="application/json", text='{"ok": true}')
    )
    asked: list[HttpCall] = field(default_factory=list)

    async def send(self, call: HttpCall) -> HttpAnswer:
        self.asked.append(call)
        if isinstance(self.answer, HttpCallFailed):
            raise self.answer
        return self.answer


async def no_run(node_id: str, run_id: RunId) -> None:
    raise AssertionError("a request is no run")


async def performed(server: Server, config: JsonObject, given: JsonValue = None, *, unreadable: str = "") -> Succeeded:
    secrets = InMemorySecretStore(InMemoryState())
    secrets.unreadable.add(unreadable)
    secret = Secret(organization_id=ORG, name="TOKEN", created_at=START, updated_at=START)
    await secrets.put(secret, TOKEN, an_audit_event(1))
    plan = planned(entrypoint(), node("call", "http_request", **config), "start -> call")
    context = NodeContext(
        organization_id=ORG,
        workflow_run_id=WorkflowRunId("wfr_1"),
        requested_by=KEY,
        run_input=given,
        nodes={"start": NodeRun(node_id="start", status=NodeStatus.SUCCEEDED, output=given)},
        note_run=no_run,
        note_audit=lambda entry: None,
    )
    expressions = JmesPathExpressions()
    step = HttpStep(
        requests=HttpRequests(caller=server, expressions=expressions),
        inputs=BoundInputs(secrets=secrets, expressions=expressions),
    )
    return await step.execute(plan.by_id["call"], NodeRun(node_id="call"), context)


async def test_what_is_put_into_an_address_stays_where_it_is_put() -> None:
    server = Server()
    config: JsonObject = {"url": "https://a.example/v1/{{start.id}}?q={{start.q}}"}
    await performed(server, config, {"id": "../admin?x=1#y", "q": "a&b=c"})
    assert server.asked[0].url == "https://a.example/v1/..%2Fadmin%3Fx%3D1%23y?q=a%26b%3Dc"


async def test_an_address_that_a_node_put_out_is_taken_as_it_is() -> None:
    server = Server()
    await performed(server, {"url": "{{start.link}}"}, {"link": "https://a.example/x?y=1"})
    assert server.asked[0].url == "https://a.example/x?y=1"


async def test_headers_query_and_body_are_filled_in() -> None:
    server = Server()
    config: JsonObject = {
        "method": "POST",
        "url": "https://a.example",
        "headers": {
            "X-Name": "{{start.name}}",
            "Authorization": "Bearer {{inputs.token}}",
            "X-Key": {"secret": "TOKEN"},
        },
        "query": {"page": "{{start.page}}"},
        "body": {"all": "{{start.numbers}}", "text": "{{start.name}}!"},
        "inputs": {"token": {}, "limit": {"default": 5}},
        "bound": {"token": {"secret": "TOKEN"}},
    }
    await performed(server, config, {"name": "Ada\r\nX-Evil: 1", "page": 2, "numbers": [1, 2]})
    call = server.asked[0]
    headers = dict(call.headers)
    assert headers["X-Name"] == "Ada  X-Evil: 1"
    assert (headers["Authorization"], headers["X-Key"]) == (f"Bearer {TOKEN}", TOKEN)
    assert call.query == (("page", "2"),)
    assert call.body is not None
    assert json.loads(call.body) == {"all": [1, 2], "text": "Ada\r\nX-Evil: 1!"}
    assert headers["Content-Type"] == "application/json"
    assert TOKEN not in repr(call)


@pytest.mark.requirement("B12")
@pytest.mark.parametrize("media_type", ["application/json", "text/plain"])
async def test_a_secret_that_comes_back_is_hidden(media_type: str) -> None:
    text = json.dumps({"you": TOKEN}) if media_type == "application/json" else f"you sent {TOKEN}"
    server = Server(answer=HttpAnswer(status=200, media_type=media_type, text=text))
    done = await performed(server, {"url": "https://a.example", "headers": {"X": {"secret": "TOKEN"}}})
    assert TOKEN not in json.dumps(done.output)
    assert "[hidden]" in json.dumps(done.output)


@pytest.mark.parametrize(("status", "retryable"), [(404, False), (429, True), (503, True), (302, False)])
async def test_an_answer_that_is_no_success_fails_the_node(status: int, retryable: bool) -> None:
    server = Server(answer=HttpAnswer(status=status, media_type="text/plain", text=f"no, {TOKEN}"))
    with pytest.raises(NodeFailed) as failed:
        await performed(server, {"url": "https://a.example"})
    assert (failed.value.error.code, failed.value.error.retryable) == ("http_status", retryable)
    assert TOKEN not in failed.value.error.detail


async def test_a_request_that_cannot_be_sent_fails_the_node_as_it_was_said() -> None:
    server = Server(answer=HttpCallFailed("http_blocked", "The address is private.", retryable=False))
    with pytest.raises(NodeFailed) as failed:
        await performed(server, {"url": "https://a.example"})
    assert (failed.value.error.code, failed.value.error.detail) == ("http_blocked", "The address is private.")


async def test_a_secret_that_is_gone_is_said_by_name() -> None:
    with pytest.raises(NodeFailed) as failed:
        await performed(Server(), {"url": "https://a.example", "headers": {"X": {"secret": "OTHER"}}})
    assert failed.value.error.code == "secret_missing"


@pytest.mark.requirement("K8")
async def test_a_secret_elsewhere_that_cannot_be_read_fails_the_node_before_anything_is_sent() -> None:
    server, name = Server(), "vault:github#token"
    config: JsonObject = {"url": "https://a.example", "method": "POST", "headers": {"X": {"secret": name}}}
    with pytest.raises(NodeFailed) as failed:
        await performed(server, config, unreadable=name)
    assert (failed.value.error.code, failed.value.error.retryable) == ("secret_unavailable", True)
    assert repr(name) in failed.value.error.detail
    assert server.asked == []


async def test_what_says_it_is_json_and_is_not_stays_text() -> None:
    server = Server(answer=HttpAnswer(status=200, media_type="application/json", text="{oops"))
    done = await performed(server, {"url": "https://a.example"})
    assert done.output == {"status": 200, "media_type": "application/json", "body": "{oops"}
