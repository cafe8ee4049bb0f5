"""Which form an answer takes: the Accept header against what we can write, in the client's order."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from trainwright.base.errors import NotAcceptable, UnsupportedMediaType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Shape(StrEnum):
    """What is asked for instead of the object: the `as` parameter of a media type."""

    PLAIN = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


_GROUP_VERSIONS = {
    Shape.TABLE: ("meta.k8s.io", "v1"),
    Shape.METADATA: ("meta.k8s.io", "v1"),
    Shape.METADATA_LIST: ("meta.k8s.io", "v1"),
    Shape.DISCOVERY: ("apidiscovery.k8s.io", "v2"),
}
OBJECT_SHAPES = (Shape.PLAIN, Shape.TABLE, Shape.METADATA, Shape.METADATA_LIST)
DISCOVERY_SHAPES = (Shape.PLAIN, Shape.DISCOVERY)

_ENCODINGS = {
    "application/json": JSON,
    "application/*": JSON,
    "*/*": JSON,
    "application/yaml": YAML,
    "text/yaml": YAML,
}


@dataclass(frozen=True, slots=True)
class MediaRange:
    """One alternative of an Accept header, or a Content-Type."""

    type: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    quality: float = 1.0


@dataclass(frozen=True, slots=True)
class Form:
    """The encoding and shape that were agreed on."""

    encoding: str = JSON
    shape: Shape = Shape.PLAIN

    @property
    def content_type(self) -> str:
        """The Content-Type; discovery repeats its parameters, since clients decide by them."""
        if self.shape is Shape.DISCOVERY:
            group, version = _GROUP_VERSIONS[self.shape]
            return f"{self.encoding};g={group};v={version};as={self.shape}"
        return self.encoding


PLAIN_JSON = Form()


def parse_media_range(text: str) -> MediaRange:
    """Read one `type/subtype;name=value;q=0.5`."""
    media_type, *rest = (part.strip() for part in text.split(";"))
    parameters: dict[str, str] = {}
    quality = 1.0
    for part in rest:
        name, _, value = part.partition("=")
        if name.strip().lower() == "q":
            quality = _parse_quality(value)
        elif name:
            parameters[name.strip().lower()] = value.strip().strip('"')
    return MediaRange(media_type.lower(), parameters, quality)


def _parse_quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def parse_accept(header: str) -> Sequence[MediaRange]:
    """The alternatives, most wanted first; none at all means anything goes."""
    ranges = [parse_media_range(part) for part in header.split(",") if part.strip()]
    wanted = sorted((r for r in ranges if r.quality > 0), key=lambda r: -r.quality)
    return wanted if ranges else [MediaRange("*/*")]


def choose_form(accept: str, shapes: Sequence[Shape] = (Shape.PLAIN,)) -> Form:
    """The first alternative that we can write.

    Args:
        accept: the Accept header; empty means JSON.
        shapes: what this endpoint offers.

    Raises:
        NotAcceptable: when nothing fits; the message lists what is offered.
    """
    for wanted in parse_accept(accept):
        encoding = _ENCODINGS.get(wanted.type)
        shape = _find_shape(wanted.parameters, shapes)
        if encoding is not None and shape is not None:
            return Form(encoding, shape)
    raise NotAcceptable(
        f"only the following media types are accepted: {', '.join(_ENCODINGS)}; seen {accept!r}"
    )


def _find_shape(parameters: Mapping[str, str], shapes: Sequence[Shape]) -> Shape | None:
    asked = parameters.get("as", "")
    if asked not in [str(shape) for shape in shapes]:
        return None
    shape = Shape(asked)
    if shape is Shape.PLAIN:
        return shape
    seen = (parameters.get("g"), parameters.get("v"))
    return shape if seen == _GROUP_VERSIONS[shape] else None


def require_media_type(content_type: str, allowed: Sequence[str]) -> str:
    """The body's media type; an absent header means the first of `allowed`.

    Raises:
        UnsupportedMediaType: when it is not one of `allowed`.
    """
    if not content_type.strip():
        return allowed[0]
    media_type = parse_media_range(content_type).type
    if media_type not in allowed:
        raise unknown_format(allowed)
    return media_type


def unknown_format(accepted: Sequence[str]) -> UnsupportedMediaType:
    """415 for a body that is none of `accepted`."""
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
