"""Images and files at providers that take what their vendors take, on each of our wires."""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from application.models.ports import LanguageModel, ModelError, ModelReply
from domain.model_providers.provider import ProviderKind, ProviderWire
from domain.threads.message import FileContent, ImageContent, Message, TextContent
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from tests.builders import a_message
from tests.integration.llm.strict.chat import StrictGemini, bad_request
from tests.integration.llm.strict.inputs import StrictInputs
from tests.integration.llm.strict.messages import StrictMessages
from tests.integration.llm.strict.provider import Family, Said, StrictProvider
from tests.integration.llm.strict.responses import StrictResponses
from tests.unit.llm.model_requests import (
    a_request,
    a_result,
    a_tool_message,
    a_use,
    all_events,
    an_assistant_message,
)
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.requirement("H5")]


def inline(text: bytes) -> str:
    return base64.b64encode(text).decode()


PICTURE = ImageContent(media_type="image/png", data=inline(b"\x89PNG"))
DRAWING = ImageContent(media_type="image/bmp", data=inline(b"BM"))
REPORT = FileContent(media_type="application/pdf", name="report.pdf", data=inline(b"%PDF-1.7"))
LINKED = FileContent(media_type="application/pdf", url="https://example.org/a.pdf")
SPEECH = FileContent(media_type="audio/wav", data=inline(b"RIFF"))
NOTES = FileContent(media_type="text/markdown", name="notes.md", data=inline(b"# The walrus"))
ARCHIVE = FileContent(media_type="application/zip", name="a.zip", data=inline(b"PK"))
ALL = (PICTURE, DRAWING, REPORT, LINKED, SPEECH, NOTES, ARCHIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A wire, a model behind it, the kinds that it takes, and those that are sent of `ALL`."""

    model_name: str
    make: Callable[[], Family]
    kind: ProviderKind = ProviderKind.OPENAI
    wire: ProviderWire = ProviderWire.CHAT
    takes: tuple[str, ...] = ("image", "pdf")
    sent: tuple[str, ...]


CASES = {
    "responses": Case(
        model_name="gpt-5.5", make=StrictResponses, wire=ProviderWire.RESPONSES, sent=("image", "pdf", "pdf")
    ),
    "messages": Case(
        model_name="claude-opus-4-8",
        make=lambda: StrictMessages(adaptive=True),
        kind=ProviderKind.ANTHROPIC,
        sent=("image", "pdf", "pdf"),
    ),
    "chat": Case(model_name="gemini-3-pro", make=StrictGemini, takes=("image", "audio"), sent=("image", "audio")),
    "chat of an unknown model": Case(model_name="acme-1", make=StrictGemini, takes=("image",), sent=("image",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    provider: StrictProvider
    family: StrictInputs
    model: LanguageModel

    async def ask(self, case: Case, *messages: Message) -> ModelReply:
        events = await all_events(self.model.stream(a_request(f"acme:{case.model_name}", messages=messages)))
        reply = events[-1]
        assert isinstance(reply, ModelReply)
        return reply


@asynccontextmanager
async def serving(case: Case, http: AiohttpProviders, *takes: str) -> AsyncIterator[There]:
    family = StrictInputs(case.make(), *takes)
    async with StrictProvider(family).serving() as provider:
        config = ProviderConfig(name="acme", kind=case.kind, base_url=provider.url, api_key="sk-1", wire=case.wire)
        models = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy())
        yield There(provider=provider, family=family, model=models.open(config))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_what_the_model_takes_is_attached_and_the_rest_is_text(case: Case, http: AiohttpProviders) -> None:
    async with serving(case, http, *case.takes) as there:
        there.provider.say(Said(text="I see."))
        await there.ask(case, a_message(1, content=(TextContent(text="Look."), *ALL)))
        assert there.provider.refused == []
        assert there.family.seen == [list(case.sent)]
        body = str(there.provider.bodies)
        assert "# The walrus" in body
        for described in ("image/bmp", "a.zip", *(() if "pdf" in case.takes else ("report.pdf", LINKED.url or ""))):
            assert described in body
        assert str(DRAWING.data) not in body
        assert str(ARCHIVE.data) not in body


@pytest.mark.requirement("A6")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_images_and_files_of_results_are_attached_too(case: Case, http: AiohttpProviders) -> None:
    use = a_use()
    async with serving(case, http, *case.takes) as there:
        there.provider.say(Said(text="I see."))
        result = a_result(use, "", images=(PICTURE, DRAWING), files=(REPORT, LINKED, SPEECH, NOTES, ARCHIVE))
        thread = (a_message(1, "Look."), an_assistant_message(use), a_tool_message(result))
        await there.ask(case, *thread)
        # What earlier turns of another model lack may be refused once; attachments are not.
        assert there.family.seen[-1] == list(case.sent)
        assert "# The walrus" in str(there.provider.bodies[-1])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_provider_that_refuses_them_gets_them_described(case: Case, http: AiohttpProviders) -> None:
    async with serving(case, http) as there:
        there.provider.say(Said(text="I read of it."))
        reply = await there.ask(case, a_message(1, content=(TextContent(text="Look."), PICTURE, REPORT)))
        assert reply.text == "I read of it."
        assert len(there.provider.refused) == 1
        assert there.family.seen == [[]]
        assert "An image of type image/png" in str(there.provider.bodies[-1])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_refused_messages_are_described_at_once_in_later_requests_and_others_attached(
    case: Case, http: AiohttpProviders
) -> None:
    asked = a_message(1, content=(TextContent(text="Look."), PICTURE))
    async with serving(case, http) as there:
        there.provider.say(Said(text="I read of it."), Said(text="As I said."), Said(text="Of this, too."))
        await there.ask(case, asked)
        await there.ask(case, asked, a_message(2, "Again?"))
        assert (len(there.provider.refused), len(there.provider.bodies)) == (1, 3)
        await there.ask(case, a_message(3, content=(PICTURE,)))
        assert (len(there.provider.refused), len(there.provider.bodies)) == (2, 5)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_refusal_that_descriptions_do_not_help_against_is_raised(case: Case, http: AiohttpProviders) -> None:
    broken = bad_request("Could not process image")
    async with serving(case, http, *case.takes) as there:
        there.provider.refuse(broken, broken)
        with pytest.raises(ModelError):
            await there.ask(case, a_message(1, content=(PICTURE,)))
        assert len(there.provider.bodies) == 2
        there.provider.refuse(broken)
        with pytest.raises(ModelError):
            await there.ask(case, a_message(1, "An image, in words alone."))
        assert len(there.provider.bodies) == 3
