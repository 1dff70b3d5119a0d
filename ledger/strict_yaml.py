"""YAML that people write, read without surprises.

YAML 1.1 turns `no` into false, `2025-09-15` into a date, `1e-4` into a string and 0.1 into a float;
each of these can change a benchmark silently. Here a scalar is null, true, false or an integer
where it is spelt exactly so, and text otherwise: a decimal stays the text that the author wrote.
Duplicate keys, anchors, tags, several documents in a file and nesting of more than 64 levels are
refused with line and column.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ledger.canonical import MAX_DEPTH
from ledger.errors import BadInputError

MAX_BYTES = 8 * 1024 * 1024
_INTEGER = re.compile(r"(?:0|-?[1-9][0-9]{0,15})\Z")
_WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}


def load_yaml(path: Path) -> Any:  # noqa: ANN401 - YAML holds any JSON type
    """Read one YAML document from a file as JSON values (no floats, no dates).

    Raises:
        BadInputError: with file, line and column.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInputError(
            f"cannot be read: {error.strerror}", where=str(path), remedy="Name a readable file."
        ) from error
    if len(data) > MAX_BYTES:
        raise BadInputError(f"is larger than {MAX_BYTES} bytes", where=str(path))
    try:
        return parse_yaml(data.decode("utf-8"), name=str(path))
    except UnicodeDecodeError as error:
        raise BadInputError(f"is not UTF-8 at byte {error.start}", where=str(path)) from error


def parse_yaml(text: str, *, name: str = "<text>") -> Any:  # noqa: ANN401
    """Read one YAML document as JSON values; `name` stands in error messages."""
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise _refusal(name, event.start_mark, f"nested more than {MAX_DEPTH} levels deep")
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise _refusal(name, event.start_mark, "anchors and aliases are not allowed")
            if getattr(event, "tag", None):
                raise _refusal(name, event.start_mark, "tags are not allowed")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise _refusal(name, error.problem_mark, error.problem or "not YAML") from error
    except yaml.YAMLError as error:
        what = " ".join(str(error).split())
        raise BadInputError(f"is not YAML: {what}", where=name) from error
    return None if node is None else _value(node, name)


def _value(node: yaml.Node, name: str) -> Any:  # noqa: ANN401
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, name) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        raise _refusal(name, node.start_mark, "an unknown kind of node")
    out: dict[str, Any] = {}
    for key_node, item in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _refusal(name, key_node.start_mark, "a key that is not text")
        key = str(key_node.value)
        if key in out:
            raise _refusal(name, key_node.start_mark, f"the key {key!r} stands twice")
        out[key] = _value(item, name)
    return out


def _scalar(node: yaml.ScalarNode) -> None | bool | int | str:
    text = str(node.value)
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.match(text) else text


# The C and the Python parser have mark classes of their own.
def _refusal(name: str, mark: Any, problem: str) -> BadInputError:  # noqa: ANN401
    place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    return BadInputError(problem, where=place, remedy="Correct the YAML.")
