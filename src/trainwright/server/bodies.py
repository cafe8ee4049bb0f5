"""Reading request bodies: strict JSON and YAML, and what a plain decoder would hide.

YAML is read as Kubernetes reads it, as another way to write JSON: no times, no tags, string keys.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from trainwright.base.errors import BadRequest

if TYPE_CHECKING:
    from trainwright.base.objects import Json
from trainwright.server.negotiation import JSON, PROTOBUF, YAML, require_media_type
from trainwright.server.protobuf import decode_protobuf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_YAML_NODES = 1_000_000
"""Aliases let a small document grow without bound."""


class _Loader(yaml.CSafeLoader):
    """The safe loader without timestamps: a date in YAML stays the text it is."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def decode_json(body: bytes) -> Json:
    """Decode strict JSON.

    Raises:
        BadRequest: not JSON, or nested too deeply.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body of the request is no JSON: {error}") from error


def decode_yaml(body: bytes) -> Json:
    """Decode one YAML document into what JSON can hold.

    Raises:
        BadRequest: not YAML, several documents, or a value that JSON has not.
    """
    try:
        document = yaml.load(body, Loader=_Loader)  # noqa: S506 - derived from the safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadRequest(f"the body of the request is no YAML: {error}") from error
    return _Jsonifier().convert(document)


def decode_json_or_yaml(body: bytes) -> Json:
    """Decode a body whose media type is YAML; clients mostly send JSON, which is YAML too."""
    if body.lstrip()[:1] == b"{":
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return decode_yaml(body)
    return decode_yaml(body)


def decode_body(content_type: str, body: bytes) -> Json:
    """Decode the body of a create, update, delete or review by its Content-Type.

    Raises:
        UnsupportedMediaType: none of JSON, YAML and protobuf.
        BadRequest: not what its Content-Type says.
    """
    media_type = require_media_type(content_type, BODY_TYPES)
    return _DECODERS[media_type](body)


class _Jsonifier:
    """Copies a YAML value into a JSON one, counting nodes."""

    def __init__(self) -> None:
        self.nodes = 0

    def convert(self, value: Any, depth: int = 0) -> Json:
        self.nodes += 1
        if self.nodes > MAX_YAML_NODES or depth > 500:
            raise BadRequest("the body of the request is too large once its YAML aliases are read")
        if isinstance(value, dict):
            return {_key(key): self.convert(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.convert(item, depth + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            raise BadRequest(f"the body of the request has a number that JSON has not: {value}")
        if value is None or isinstance(value, str | bool | int | float):
            return value
        raise BadRequest(
            f"the body of the request has a YAML {type(value).__name__}, which JSON has not"
        )


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    raise BadRequest(f"the body of the request has a YAML key that is no text: {key!r}")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as the pairs that it was written with."""


def find_duplicate_fields(body: bytes) -> list[str]:
    """The paths of keys that a JSON object names twice, such as `spec.suspend`.

    Bodies that are no JSON have none (their decoder has complained already).
    """
    seen_twice = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal seen_twice
        if len({key for key, _ in pairs}) != len(pairs):
            seen_twice = True

    try:
        json.loads(body, object_pairs_hook=look)
        if not seen_twice:
            return []
        document = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    _collect_duplicates(document, "", found)
    return found


def _collect_duplicates(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            here = f"{path}.{key}" if path else key
            if key in seen and here not in found:
                found.append(here)
            seen.add(key)
            _collect_duplicates(item, here, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect_duplicates(item, f"{path}[{index}]", found)


BODY_TYPES = (JSON, YAML, PROTOBUF)
_DECODERS: Mapping[str, Callable[[bytes], Json]] = {
    JSON: decode_json,
    YAML: decode_json_or_yaml,
    PROTOBUF: decode_protobuf,
}
