"""Reading request bodies: strict JSON and YAML, and what a plain decoder would hide."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from trainwright.api.manifests import ManifestError, parse_yaml
from trainwright.base.errors import BadRequest
from trainwright.server.negotiation import JSON, PROTOBUF, YAML, require_media_type
from trainwright.server.protobuf import decode_protobuf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainwright.base.objects import Json


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
        document: Json = parse_yaml(body, "the body of the request", strict=False)
    except ManifestError as error:
        raise BadRequest(str(error)) from error
    return document


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
