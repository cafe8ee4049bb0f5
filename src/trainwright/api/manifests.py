"""YAML as Kubernetes reads and writes it: another way to write JSON, and manifests in it.

The one place that reads YAML of users. Source: sigs.k8s.io/yaml as kubectl 1.32 has it: `on` is
true, `010` is 8, `1e3` is 1000, `1:30` and dates stay text, keys are made text.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import yaml

from trainwright.base.errors import TrainwrightError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from trainwright.base.objects import Json, Object

MAX_NODES = 1_000_000
"""Aliases let a small document grow without bound."""
MAX_DEPTH = 200

_TAG = "tag:yaml.org,2002:"
_BOOLS = {
    form: value
    for value, words in ((True, ("true", "yes", "on", "y")), (False, ("false", "no", "off", "n")))
    for word in words
    for form in (word, word.capitalize(), word.upper())
}
_NULLS = ("", "~", "null", "Null", "NULL")
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)"
    r"|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}


class ManifestError(TrainwrightError, ValueError):
    """Text that is no manifest: where, what was seen, what was wanted."""


def _find_number(text: str) -> int | float | None:
    """The number that a plain scalar is; None: it is text."""
    if text[:1] not in tuple("-+.0123456789"):
        return None
    plain = text.replace("_", "")
    integer = _INTEGER.fullmatch(plain)
    if integer:
        form = integer.lastgroup or ""
        number = int(integer["sign"] + integer[form], _BASES[form])
        return number if -(2**63) <= number < 2**64 else float(number)
    if _INFINITE.fullmatch(plain):
        return float(plain.replace(".", ""))
    if _FLOAT.fullmatch(plain) and math.isfinite(float(plain)):
        return float(plain)
    return None


def _find_tag(text: str) -> str:
    """What a plain scalar is."""
    if text in _BOOLS:
        return _TAG + "bool"
    if text in _NULLS:
        return _TAG + "null"
    if text == "<<":
        return _TAG + "merge"
    number = _find_number(text)
    if number is None:
        return _TAG + "str"
    return _TAG + ("int" if isinstance(number, int) else "float")


class _Loader(yaml.CSafeLoader):
    """Kubernetes' reading of YAML, of two equal keys the last."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _find_tag(value)
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]  # PyYAML's

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        number = _find_number(node.value)
        if number is None:
            raise yaml.constructor.ConstructorError(None, None, "no number", node.start_mark)
        return number

    def construct_bool(self, node: yaml.ScalarNode) -> bool:
        value = _BOOLS.get(node.value)
        if value is None:
            raise yaml.constructor.ConstructorError(None, None, "no boolean", node.start_mark)
        return value


_Loader.add_constructor(_TAG + "int", _Loader.construct_number)
_Loader.add_constructor(_TAG + "float", _Loader.construct_number)
_Loader.add_constructor(_TAG + "bool", _Loader.construct_bool)


class _StrictLoader(_Loader):
    """The same, and each key occurs once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key "{key.value}" occurs twice', key.start_mark
                )
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else str(id(key)))
        return super().construct_mapping(node, deep)


class _Jsonifier:
    """Copies a YAML value into a JSON one, counting nodes."""

    def __init__(self) -> None:
        self._nodes = 0

    def convert(self, value: Any, depth: int = 0) -> Json:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise ValueError("too large once its YAML aliases are read")
        if isinstance(value, dict):
            return {_key(key): self.convert(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.convert(item, depth + 1) for item in value]
        if isinstance(value, float):
            return _shorten(value)
        if value is None or isinstance(value, str | bool | int):
            return value
        raise ValueError(f"has a YAML {type(value).__name__}, which JSON has not")


def _shorten(number: float) -> int | float:
    """JSON writes a whole number without a point, and so it is an integer when read again."""
    if not math.isfinite(number):
        raise ValueError(f"has a number that JSON has not: {number}")
    return int(number) if number.is_integer() and abs(number) < 2**63 else number


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        return str(_shorten(key))
    if isinstance(key, str | int):
        return str(key)
    raise ValueError(f"has a YAML key that is no text: {key!r}")


def parse_yaml(text: str | bytes, source: str = "input", *, strict: bool = True) -> Any:
    """The one document of a YAML text, in what JSON can hold.

    Args:
        text: the text; none is None.
        source: what the text is, for messages.
        strict: refuse a key that occurs twice; else the last one holds.

    Raises:
        ManifestError: naming `source`, and line and column where they are known.
    """
    documents = list(iter_documents(text, source, strict=strict))
    if len(documents) > 1:
        raise ManifestError(f"{source}: holds {len(documents)} documents, one was wanted")
    return documents[0] if documents else None


def iter_documents(
    text: str | bytes, source: str = "input", *, strict: bool = True
) -> Iterator[Any]:
    """The documents of a YAML text; empty ones are left out."""
    loader = _StrictLoader if strict else _Loader
    try:
        for document in yaml.load_all(text, Loader=loader):
            if document is not None:
                yield _Jsonifier().convert(document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise ManifestError(f"{where}: {error.problem or 'no YAML'}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(f"{source}: no YAML: {error}") from error


def parse_manifests(text: str | bytes, source: str = "input") -> list[Object]:
    """The objects of a manifest, `List` kinds taken apart.

    Raises:
        ManifestError: when a document is no object with `apiVersion` and `kind`, or its metadata
            cannot be read.
    """
    objects: list[Object] = []
    for number, document in enumerate(iter_documents(text, source), start=1):
        where = f"{source}: document {number}"
        obj = _require_manifest(document, where)
        if obj["kind"] != "List":
            objects.append(obj)
            continue
        items = obj.get("items")
        _require(items, list, f"{where}: items")
        objects += [
            _require_manifest(item, f"{where}: items[{index}]")
            for index, item in enumerate(items or ())
        ]
    return objects


def _require_manifest(document: Json, where: str) -> Object:
    """A document of which everybody may read the kind, the names, the labels and annotations."""
    if not isinstance(document, dict):
        raise ManifestError(f"{where}: a {type(document).__name__} was seen, an object was wanted")
    missing = [key for key in ("apiVersion", "kind") if not document.get(key)]
    if missing:
        raise ManifestError(f"{where}: {' and '.join(missing)} missing; is this a manifest?")
    for key in ("apiVersion", "kind"):
        _require(document[key], str, f"{where}: {key}")
    metadata = document.get("metadata")
    _require(metadata, dict, f"{where}: metadata")
    for key, wanted in (("name", str), ("namespace", str), ("labels", dict), ("annotations", dict)):
        _require((metadata or {}).get(key), wanted, f"{where}: metadata.{key}")
    return document


def _require(value: Json, wanted: type, where: str) -> None:
    if value is not None and not isinstance(value, wanted):
        text = f"a {type(value).__name__} was seen, a {wanted.__name__} was wanted"
        hint = "; quote it" if wanted is str and isinstance(value, bool | int | float) else ""
        raise ManifestError(f"{where}: {text}{hint}")


class _Dumper(yaml.CSafeDumper):
    """Quotes texts that any reader takes for more than text; repeats what occurs twice."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            tag = _find_tag(value)
            if tag != _TAG + "str":
                return tag
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]  # PyYAML's

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def render_yaml(value: Any, *, sort_keys: bool = False) -> str:
    """A value as YAML that Kubernetes reads as the same value, keys in their own order."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=sort_keys,
        default_flow_style=False,
        allow_unicode=True,
    )
    return text
