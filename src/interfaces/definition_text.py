"""YAML and JSON definitions: parsing without YAML's surprises, and writing for editors."""

import json
import re
from collections.abc import Collection, Hashable
from functools import cache
from typing import Any

import yaml

from domain.json_value import JsonObject
from interfaces.json_bounds import MAX_VALUES, has_too_many_values

MAX_YAML = 256 * 1024
"""Most characters of a YAML text: parsing takes a hundred times as long as JSON."""


_ODD = r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ufefe\uff00-\U0010ffff]"


class DefinitionTextError(Exception):
    """The text is invalid. The message is a sentence without its subject: `is not valid YAML:
    line 2 …`."""


def read_definition(text: str, *, is_json: bool, texts: Collection[str] = (), aliases: bool = True) -> object:
    """The JSON value of the text.
    - Under the keys `texts`, YAML's bare `true`, `no`, `on` and the like are strings.
    - Without `aliases`, aliases are rejected: a few of them can expand to a lot of data.
    - Raises DefinitionTextError, with the position of a syntax error.
    """
    if is_json and has_too_many_values(text.encode(errors="replace")):
        raise DefinitionTextError(f"has more than {MAX_VALUES} values.")
    try:
        # JSON is YAML, but the JSON parser gives better messages.
        document = json.loads(text) if is_json else yaml.load(text, _loader(texts, aliases=aliases))  # noqa: S506
        # YAML also has dates and sets.
        return json.loads(json.dumps(document, allow_nan=False, ensure_ascii=False).encode())
    except json.JSONDecodeError as exc:
        raise DefinitionTextError(f"is not valid JSON: line {exc.lineno}, column {exc.colno}: {exc.msg}.") from exc
    except yaml.MarkedYAMLError as exc:
        place = f"line {exc.problem_mark.line + 1}, column {exc.problem_mark.column + 1}: " if exc.problem_mark else ""
        raise DefinitionTextError(f"is not valid YAML: {place}{exc.problem}.") from exc
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as exc:
        raise DefinitionTextError("contains something other than plain data.") from exc


def written(document: JsonObject) -> str:
    """YAML with keys in their given order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _loader(texts: Collection[str], *, aliases: bool) -> type[yaml.SafeLoader]:
    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
            for key, value in node.value:
                if key.value in texts and value.tag == "tag:yaml.org,2002:bool":
                    value.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep)

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            if not aliases and self.check_event(yaml.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=mark)
            return super().compose_node(parent, index)

    return Loader


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as blocks, without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Characters that YAML folds or treats as line ends are escaped."""
    style = '"' if _odd().search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


@cache
def _odd() -> re.Pattern[str]:
    return re.compile(_ODD)


_Dumper.add_representer(str, _text)
