"""Parses and validates the YAML scripts of scripted models, and compiles their references and
patterns."""

import re
from pathlib import Path
from typing import Annotated, TypeAlias

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.types import JsonValue as YamlValue

from domain.json_value import JsonValue
from domain.runs.finish_reason import FinishReason
from infrastructure.llm.script_template import ScriptContext, Template, TemplateError, compile_template

MAX_SCRIPT_BYTES = 1024 * 1024
DEFAULT_CLOSING = "I have to stop here; this is what I could do."

Rendered: TypeAlias = Template | dict[str, "Rendered"] | list["Rendered"] | int | float | bool | None


class ScriptError(Exception):
    """The file is not a valid script; the message has the place and the reason."""


def _template(value: object) -> Template:
    if isinstance(value, Template):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a string")
    try:
        return compile_template(value)
    except TemplateError as exc:
        raise ValueError(str(exc)) from exc


def _pattern(value: object) -> re.Pattern[str]:
    if not isinstance(value, str):
        raise ValueError("must be a regular expression")
    try:
        return re.compile(value, re.IGNORECASE)
    except re.error as exc:
        raise ValueError(f"is not a regular expression: {exc}") from exc


_Template = Annotated[Template, BeforeValidator(_template)]
_Pattern = Annotated[re.Pattern[str], BeforeValidator(_pattern)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, defer_build=True)


class ScriptedUsage(_Strict):
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)


class ScriptedCall(_Strict):
    """A tool call. `malformed` is argument text that is not a JSON object."""

    tool: str = Field(min_length=1)
    arguments: dict[str, YamlValue] = {}
    malformed: str | None = None
    _compiled: Rendered = None

    def model_post_init(self, _context: object, /) -> None:
        """Compile the references in the arguments."""
        self._compiled = _compiled(self.arguments)

    def rendered(self, context: ScriptContext) -> dict[str, JsonValue]:
        """The arguments with resolved references. Raises NothingFoundError."""
        value = _resolved(self._compiled, context)
        return value if isinstance(value, dict) else {}


class Condition(_Strict):
    """All given conditions must hold: the turn's number from 1, the presence of tool results in
    this run, patterns in the user's text and in the newest result."""

    turn: int | None = Field(default=None, ge=1)
    has_results: bool | None = None
    user: _Pattern | None = None
    last_result: _Pattern | None = None

    def holds(self, turn: int, context: ScriptContext) -> bool:
        if self.turn is not None and self.turn != turn:
            return False
        if self.user is not None and not self.user.search(context.user_text):
            return False
        if self.has_results is None and self.last_result is None:
            return True
        result = context.result_of("last")
        if self.has_results is not None and self.has_results != (result is not None):
            return False
        return self.last_result is None or (result is not None and self.last_result.search(result) is not None)


class ScriptedTurn(_Strict):
    """One turn of the model: text, calls, or both."""

    when: Condition | None = None
    text: _Template = Template(("",))
    calls: tuple[ScriptedCall, ...] = ()
    usage: ScriptedUsage | None = None
    finish_reason: FinishReason | None = None


class ScriptedRun(_Strict):
    """The turns of runs whose user text matches the pattern."""

    user: _Pattern
    turns: tuple[ScriptedTurn, ...] = Field(min_length=1)


class Script(_Strict):
    """A whole script. `turns` apply to runs that match none of `runs`."""

    description: str = ""
    runs: tuple[ScriptedRun, ...] = ()
    turns: tuple[ScriptedTurn, ...] = ()
    closing: _Template = compile_template(DEFAULT_CLOSING)
    usage: ScriptedUsage = ScriptedUsage()
    delay_ms: float = Field(default=0, ge=0, le=60_000)
    chunk_chars: int = Field(default=24, ge=1)

    def turn_for(self, number: int, context: ScriptContext) -> ScriptedTurn | None:
        """The first turn whose condition holds, else the `number`-th turn without condition, else
        None."""
        turns = next((run.turns for run in self.runs if run.user.search(context.user_text)), self.turns)
        in_order = []
        for turn in turns:
            if turn.when is None:
                in_order.append(turn)
            elif turn.when.holds(number, context):
                return turn
        return in_order[number - 1] if number <= len(in_order) else None


def load_script(path: Path) -> Script:
    try:
        if path.stat().st_size > MAX_SCRIPT_BYTES:
            raise ScriptError(f"{path.name} is larger than {MAX_SCRIPT_BYTES // 1024} KiB.")
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise ScriptError(f"{path.name} cannot be read.") from exc
    except yaml.MarkedYAMLError as exc:
        line = "" if exc.problem_mark is None else f" at line {exc.problem_mark.line + 1}"
        raise ScriptError(f"{path.name} is not YAML{line}: {exc.problem or 'syntax error'}.") from exc
    except (yaml.YAMLError, RecursionError) as exc:
        raise ScriptError(f"{path.name} is not YAML.") from exc
    if not isinstance(data, dict) or not (data.get("turns") or data.get("runs")):
        raise ScriptError(f"{path.name} needs a list of turns (or runs with turns) at its top level.")
    try:
        return Script.model_validate(data)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        raise ScriptError(f"{path.name}: {where}: {message}.") from exc


def _compiled(value: YamlValue) -> Rendered:
    if isinstance(value, str):
        return compile_template(value)
    if isinstance(value, dict):
        return {key: _compiled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_compiled(item) for item in value]
    return value


def _resolved(value: Rendered, context: ScriptContext) -> JsonValue:
    if isinstance(value, Template):
        return value.value(context)
    if isinstance(value, dict):
        return {key: _resolved(item, context) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, context) for item in value]
    return value
