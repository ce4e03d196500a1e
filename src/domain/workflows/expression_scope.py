"""Warnings about expressions that name other nodes, although expressions see only their input."""

import re
from collections.abc import Iterable, Iterator, Mapping

from domain.workflows.faults import Fault, FaultCode
from domain.workflows.graph import ConditionConfig, TransformConfig
from domain.workflows.plan import PlannedNode

_LITERAL = re.compile(r"""'[^']*'|`[^`]*`|"[^"]*\"""")
_FILTER = re.compile(r"\[\?[^\[\]]*\]")
"""Names within a filter are those of its elements."""
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w|\s*[(:])")
_MAX_CHARACTERS = 2_000
"""Longer expressions are not looked at."""


def scope_warnings(nodes: Mapping[str, PlannedNode]) -> Iterator[Fault]:
    """A warning for each expression without `input` after one node, which names a node: its input
    is the output of that node alone. Expressions after several nodes do see their outputs by
    name."""
    for node in nodes.values():
        config = node.config
        if not isinstance(config, TransformConfig | ConditionConfig) or config.input is not None:
            continue
        if len(node.predecessors) != 1:
            continue
        for name in _named(_expressions(config)):
            if name in nodes and name != node.id:
                message = f"An expression of {node.id!r} names the node {name!r}, but sees only its input. "
                message += f'Write input: "{{{{{name}}}}}", and an expression without the name of the node.'
                yield Fault(code=FaultCode.EXPRESSION_SCOPE, message=message, node_ids=(node.id, name))


def _expressions(config: TransformConfig | ConditionConfig) -> tuple[str, ...]:
    if isinstance(config, TransformConfig):
        return (config.expression,)
    return tuple(case.expression for case in config.cases)


def _named(expressions: Iterable[str]) -> Iterator[str]:
    short = [text for text in expressions if len(text) <= _MAX_CHARACTERS]
    texts = [_FILTER.sub("", _LITERAL.sub("''", text)) for text in short]
    yield from dict.fromkeys(name for text in texts for name in _NAME.findall(text))
