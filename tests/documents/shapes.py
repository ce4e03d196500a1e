"""What YAML, JSON and TOML blocks are: each is read, and held against the schema that Dragoman
reads its like with."""

import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from infrastructure.llm.script_file import Script
from interfaces.http.agents.schemas import CreateAgentBody, UpdateAgentBody
from interfaces.http.bodies import Body, decoded_body
from interfaces.http.mcp_servers.schemas import DeclaredToolBody, ImportBody
from interfaces.http.runs.schemas import RunBody
from interfaces.http.workflows.schemas import NodeBody, WorkflowBody
from tests.documents.pages import Block


def _body(model: type[Body]) -> Callable[[Any], object]:
    return lambda value: decoded_body(model, value)


def _nodes(value: Any) -> object:
    return [decoded_body(NodeBody, node) for node in value]


def _tools(value: Any) -> object:
    return [decoded_body(DeclaredToolBody, tool) for tool in value]


def _anything(value: Any) -> object:
    return value


SHAPES: Mapping[str, Callable[[Any], object]] = {
    "agent": _body(CreateAgentBody),
    "part of an agent": _body(UpdateAgentBody),
    "workflow": _body(WorkflowBody),
    "nodes": _nodes,
    "run": _body(RunBody),
    "script": Script.model_validate,
    "declared tools": _tools,
    "servers of a client": _body(ImportBody),
    "another program's": _anything,
    "an answer": _anything,
}
"""By the names that marks use. Answers, and files of other programs, are read only."""


def check(block: Block) -> None:
    """Raises what the reader of such a file raises."""
    name = block.marks["shape"]
    read: Mapping[str, Callable[[str], Any]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
    SHAPES[name](read[block.language](block.text))
