"""Scripted models: `scripted:PATH.yaml` replies from a file, offline and deterministic, for demos
and tests. Guide: docs/guides/scripted-models.md."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from application.models.ports import (
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    RequestedCall,
    TextDelta,
    ToolChoice,
)
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from domain.threads.message import Role
from infrastructure.llm.script_file import Script, ScriptedTurn, ScriptError, load_script
from infrastructure.llm.script_template import NothingFoundError

SHIPPED_SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    path: Path
    version: tuple[int, ...] | None
    script: Script


class ScriptedModels:
    """LanguageModel over the scripts in `folders`, searched in order; no other file is read. A
    changed script is read again."""

    def __init__(self, folders: Iterable[Path], *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._folders = tuple(folders)
        self._sleep = sleep
        self._scripts: dict[str, _Loaded] = {}

    def problem_with(self, name: str) -> str | None:
        """One sentence why `scripted:{name}` is unusable, or None."""
        try:
            self._script(name)
        except ScriptError as exc:
            return str(exc)
        return None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The script's turn for this request. Raises ModelError `model_rejected` for a script that
        is missing, invalid, or refers to missing data."""
        name = request.model.partition(":")[2]
        try:
            script = self._script(name)
            reply = _reply(script, request)
        except ScriptError as exc:
            raise ModelError("model_rejected", str(exc), retryable=False) from exc
        except NothingFoundError as exc:
            detail = f"Script {name}, turn {request.turn}: {{{{ {exc} }}}} finds nothing in this run."
            raise ModelError("model_rejected", detail, retryable=False) from exc
        for start in range(0, len(reply.text), script.chunk_chars):
            if script.delay_ms:
                await self._sleep(script.delay_ms / 1000)
            yield TextDelta(text=reply.text[start : start + script.chunk_chars])
        yield reply

    def _script(self, name: str) -> Script:
        known = self._scripts.get(name)
        if known is not None and _version(known.path) == known.version:
            return known.script
        path = self._find(name)
        script = load_script(path)
        self._scripts[name] = _Loaded(path=path, version=_version(path), script=script)
        return script

    def _find(self, name: str) -> Path:
        relative = PurePosixPath(name)
        if relative.suffix not in {".yaml", ".yml"} or "\0" in name:
            raise ScriptError(
                f"A scripted model is named after a YAML file, such as scripted:hello.yaml, not {name!r}."
            )
        if relative.is_absolute() or ".." in relative.parts or "\\" in name:
            raise ScriptError(f"Scripts are named by their path inside the scripts folder; {name!r} is outside of it.")
        for folder in self._folders:
            path = folder / relative
            if path.is_file():
                # A symlink in the folder must not point outside.
                if path.resolve().is_relative_to(folder.resolve()):
                    return path
                raise ScriptError(f"Script {name!r} is a symlink to a file outside the scripts folder.")
        raise ScriptError(
            f"There is no script {name!r}. Put it into `scripts` in the data directory, or use scripted:hello.yaml."
        )


def _version(path: Path) -> tuple[int, ...] | None:
    """Identity of the file's content; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


class _RequestContext:
    """The parts of a request that scripts can read, found on demand, newest message first."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request

    @property
    def user_text(self) -> str:
        return next((m.text for m in reversed(self._request.messages) if m.role is Role.USER), "")

    def result_of(self, tool: str) -> str | None:
        for message in reversed(self._request.messages):
            if message.run_id != self._request.run_id:
                return None
            for result in reversed(message.tool_results):
                if tool in {"last", result.tool_name}:
                    return result.result
        return None


def _reply(script: Script, request: ModelRequest) -> ModelReply:
    context = _RequestContext(request)
    turn = None if request.tool_choice is ToolChoice.NONE else script.turn_for(request.turn, context)
    if turn is None:
        turn = ScriptedTurn(text=script.closing)
    calls = tuple(
        RequestedCall(name=call.tool, arguments={}, malformed=call.malformed)
        if call.malformed is not None
        else RequestedCall(name=call.tool, arguments=call.rendered(context))
        for call in turn.calls
    )
    usage = turn.usage or script.usage
    return ModelReply(
        model=request.model,
        text=turn.text.text(context),
        calls=calls,
        usage=ModelUsage(
            input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cached_tokens=usage.cached_tokens
        ),
        finish_reason=turn.finish_reason or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP),
    )
