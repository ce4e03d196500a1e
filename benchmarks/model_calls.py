"""CPU of one streamed model call: the three wires, and the library's classes for Gemini and
Converse. Run it alone: `python -m benchmarks.model_calls`. The provider is another process, whose
CPU is not counted."""

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from application.models.ports import LanguageModel, ModelReply
from domain.model_providers.cloud import NO_CLOUD, CloudSettings
from domain.model_providers.provider import ProviderKind, ProviderWire
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.library.opening import native_models
from infrastructure.llm.provider_http import provider_http
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from tests.integration.llm.strict import converse, generate_content
from tests.integration.llm.strict.chat import StrictChat
from tests.integration.llm.strict.converse import StrictConverse
from tests.integration.llm.strict.generate_content import StrictGenerateContent
from tests.integration.llm.strict.messages import StrictMessages
from tests.integration.llm.strict.provider import Answer, Family, Json, Said
from tests.integration.llm.strict.responses import StrictResponses
from tests.unit.llm.conversations import Conversation

TEXT = "It is noon here, and nothing else has happened. " * 4
CALLS, ROUNDS = 300, 5
WARM = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    kind: ProviderKind
    model: str
    make: Callable[[], Family]
    wire: ProviderWire = ProviderWire.AUTO
    key: str = "sk-test"
    cloud: CloudSettings = NO_CLOUD
    prefix: str = "/v1"


CASES = (
    Case(name="chat completions", kind=ProviderKind.OPENAI, model="model-1", make=StrictChat),
    Case(
        name="Responses", kind=ProviderKind.OPENAI, model="gpt-5.5", make=StrictResponses, wire=ProviderWire.RESPONSES
    ),
    Case(
        name="messages",
        kind=ProviderKind.ANTHROPIC,
        model="claude-opus-4-8",
        make=lambda: StrictMessages(adaptive=True),
    ),
    Case(
        name="generateContent, library",
        kind=ProviderKind.GOOGLE,
        model="gemini-3-pro",
        make=StrictGenerateContent,
        wire=ProviderWire.NATIVE,
        key=generate_content.KEY,
        prefix="",
    ),
    Case(
        name="Converse, library",
        kind=ProviderKind.BEDROCK,
        model="amazon.nova-pro-v1:0",
        make=StrictConverse,
        wire=ProviderWire.NATIVE,
        key=f"{converse.KEY_ID}:{converse.SECRET}",
        cloud=CloudSettings(region=converse.REGION),
        prefix="",
    ),
)


def streamed(answer: Answer) -> bytes:
    """The whole stream as one body."""
    if answer.encode is not None:
        return b"".join(map(answer.encode, answer.events))
    lines = [
        (f"event: {event['type']}\n" if answer.named else "").encode()
        + b"data: "
        + json.dumps(event).encode()
        + b"\n\n"
        for event in answer.events
    ]
    return b"".join(lines) + answer.end


def serve(ready: "multiprocessing.Queue[int]") -> None:
    """All families on one port, each answering every request alike."""
    body: Json = {"model": "m", "messages": [], "contents": [], "input": []}
    app = web.Application()
    for index, case in enumerate(CASES):
        family = case.make()
        answer = family.answer(body, Said(text=TEXT), case.key)
        said = streamed(answer)
        kind = "text/event-stream" if answer.encode is None else "application/vnd.amazon.eventstream"

        def handler(said: bytes = said, kind: str = kind) -> Callable[[web.Request], object]:
            async def handle(request: web.Request) -> web.Response:
                await request.read()
                return web.Response(body=said, headers={"content-type": kind})

            return handle

        for path in family.paths:
            app.router.add_post(f"/{index}{case.prefix}{path}", handler())  # type: ignore[arg-type]

    async def run() -> None:
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.put(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


async def spent(model: LanguageModel, case: Case, calls: int) -> float:
    """Seconds of CPU."""
    request = Conversation().request(f"acme:{case.model}")
    before = time.process_time()
    for _ in range(calls):
        events = [event async for event in model.stream(request)]
        assert isinstance(events[-1], ModelReply)
        assert events[-1].text == TEXT
    return time.process_time() - before


async def measure(port: int) -> dict[str, list[float]]:
    http = provider_http(HttpClients())
    opening = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy(), native=lambda: native_models)
    models = []
    for index, case in enumerate(CASES):
        url = f"http://127.0.0.1:{port}/{index}{case.prefix}"
        config = ProviderConfig(
            name="acme", kind=case.kind, base_url=url, api_key=case.key, wire=case.wire, cloud=case.cloud
        )
        models.append(opening.open(config))
    for model, case in zip(models, CASES, strict=True):
        await spent(model, case, WARM)
    found: dict[str, list[float]] = {case.name: [] for case in CASES}
    for _ in range(ROUNDS):
        for model, case in zip(models, CASES, strict=True):
            found[case.name].append(await spent(model, case, CALLS) / CALLS * 1000)
    await http.aclose()
    return found


def main() -> None:
    ready: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(ready,), daemon=True)
    server.start()
    try:
        found = asyncio.run(measure(ready.get(timeout=60)))
    finally:
        server.terminate()
    chat = sorted(found["chat completions"])[ROUNDS // 2]
    print(
        f"| call, streamed | CPU ms per call (median of {ROUNDS} rounds of {CALLS}) | of chat completions |\n|---|---|---|"
    )
    for name, rounds in found.items():
        median = sorted(rounds)[ROUNDS // 2]
        print(f"| {name} | {median:.2f} | {median / chat:.2f} |")


if __name__ == "__main__":
    main()
