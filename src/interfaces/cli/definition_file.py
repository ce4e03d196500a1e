"""Reading a YAML or JSON file that describes something to be applied."""

import json
from collections.abc import Collection, Hashable
from pathlib import Path
from typing import Any

from domain.json_value import JsonObject
from interfaces.cli.failures import BadUsage


def load_definition(path: Path, *, what: str, needs: str, texts: Collection[str] = ()) -> JsonObject:
    """The mapping with a name that a file holds; `what` it describes and what it `needs` are told when it does not.
    Under the keys `texts` YAML's bare `true`, `no`, `on` and the like are what they say, and not truth values.
    Raises BadUsage naming the file and, for bad syntax, the place."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
            for key, value in node.value:
                if key.value in texts and value.tag == "tag:yaml.org,2002:bool":
                    value.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep)

    try:
        # JSON is YAML, but a parser of its own gives better messages.
        text = path.read_text(encoding="utf-8")
        document = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader)  # noqa: S506 (a safe one)
        # YAML also has dates and sets.
        document = json.loads(json.dumps(document, allow_nan=False))
    except OSError as exc:
        raise BadUsage(f"{path} cannot be read: {exc.strerror or 'not a file'}.") from exc
    except UnicodeDecodeError as exc:
        raise BadUsage(f"{path} is not UTF-8 text.") from exc
    except json.JSONDecodeError as exc:
        raise BadUsage(f"{path} is not valid JSON: line {exc.lineno}, column {exc.colno}: {exc.msg}.") from exc
    except yaml.MarkedYAMLError as exc:
        place = f"line {exc.problem_mark.line + 1}, column {exc.problem_mark.column + 1}: " if exc.problem_mark else ""
        raise BadUsage(f"{path} is not valid YAML: {place}{exc.problem}.") from exc
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as exc:
        raise BadUsage(f"{path} holds something that is not plain data.") from exc
    if not isinstance(document, dict) or not isinstance(document.get("name"), str) or not document["name"]:
        raise BadUsage(f"{path} is no {what}: it must be a mapping with at least {needs}.")
    return document
