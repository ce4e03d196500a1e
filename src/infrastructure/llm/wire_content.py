"""Content in forms that all providers accept."""

from domain.json_value import JsonObject
from domain.threads.attachments import IMAGE_TYPES, FileKind, kind_of_file, size_of, text_of
from domain.threads.message import FileContent, ImageContent, ToolUse
from infrastructure.llm.model_inputs import ModelInput

AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""Audio that models take, and its name in chat completions."""
DEFAULT_NAME = "document.pdf"
"""Of a PDF without a name. OpenAI requires one."""


def described_image(image: ImageContent) -> str:
    """Text in place of an image for a model without image input."""
    if image.data is not None:
        return f"[An image of type {image.media_type}, {size_of(image)} bytes, which this model cannot see.]"
    return f"[An image of type {image.media_type} at {image.url}, which this model cannot see.]"


def described_file(file: FileContent) -> str:
    """Text in place of a file that a model does not read."""
    name = "" if file.name is None else f" {file.name}"
    where = f", {size_of(file)} bytes" if file.url is None else f" at {file.url}"
    return f"[A file{name} of type {file.media_type}{where}, which this model cannot read.]"


def readable(part: ImageContent | FileContent, takes: frozenset[ModelInput]) -> ImageContent | FileContent | str:
    """The part if the model reads it; otherwise its text, or a description."""
    if isinstance(part, ImageContent):
        is_read = ModelInput.IMAGE in takes and (part.url is not None or part.media_type in IMAGE_TYPES)
        return part if is_read else described_image(part)
    text = text_of(part)
    if text is not None:
        return f"File {part.name or ''} ({part.media_type}):\n{text}"
    kind = kind_of_file(part.media_type)
    if kind is FileKind.PDF and ModelInput.PDF in takes:
        return part
    if kind is FileKind.AUDIO and ModelInput.AUDIO in takes and part.url is None and part.media_type in AUDIO_FORMATS:
        return part
    return described_file(part)


def data_url(part: ImageContent | FileContent) -> str:
    """Inline content as a URL; otherwise its own."""
    return part.url if part.url is not None else f"data:{part.media_type};base64,{part.data}"


def wire_params(use: ToolUse) -> JsonObject:
    """Arguments of an earlier call. Providers require a JSON object, so malformed text is wrapped
    in one."""
    return use.params if use.malformed is None else malformed_params(use.malformed)


def malformed_params(text: str) -> JsonObject:
    """An object around arguments that are none."""
    return {"malformed_arguments": text}


def object_schema(parameters: JsonObject) -> JsonObject:
    """The schema with `type: object` and `properties`. Providers require the former, OpenAI also
    the latter; MCP servers omit them for tools without arguments."""
    if parameters.get("type") == "object" and "properties" in parameters:
        return parameters
    return {"properties": {}, **parameters, "type": "object"}
