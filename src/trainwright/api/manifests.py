"""YAML and JSON manifests as kubectl reads them: YAML 1.1 booleans, times as text, no double keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from trainwright.base.errors import TrainwrightError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from trainwright.base.objects import Object

ON_OFF_YES_NO = ("on", "off", "yes", "no")


class ManifestError(TrainwrightError, ValueError):
    """Text that is no manifest: where, what was seen, what was wanted."""


class _Loader(yaml.CSafeLoader):
    """Kubernetes' reading of YAML: `2026-01-02` stays text, `1e3` is a number, keys occur once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key "{key.value}" occurs twice', key.start_mark
                )
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else str(id(key)))
        return super().construct_mapping(node, deep)


def _without_timestamps() -> None:
    _Loader.yaml_implicit_resolvers = {
        first: [
            (tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"
        ]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    import re

    _Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
        list("-+.0123456789"),
    )


_without_timestamps()


def parse_yaml(text: str | bytes, source: str = "input") -> Any:
    """The one document of a YAML text.

    Raises:
        ManifestError: naming `source`, line and column.
    """
    documents = list(iter_documents(text, source))
    if len(documents) > 1:
        raise ManifestError(f"{source}: holds {len(documents)} documents, one was wanted")
    return documents[0] if documents else None


def iter_documents(text: str | bytes, source: str = "input") -> Iterator[Any]:
    """The documents of a YAML text; empty ones are left out."""
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            if document is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise ManifestError(f"{where}: {error.problem or 'no YAML'}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(f"{source}: no YAML: {error}") from error


def parse_manifests(text: str | bytes, source: str = "input") -> list[Object]:
    """The objects of a manifest, `List` kinds taken apart.

    Raises:
        ManifestError: when a document is no object with `apiVersion` and `kind`.
    """
    objects: list[Object] = []
    for number, document in enumerate(iter_documents(text, source), start=1):
        where = f"{source}: document {number}"
        if not isinstance(document, dict):
            raise ManifestError(
                f"{where}: a {type(document).__name__} was seen, an object was wanted"
            )
        missing = [key for key in ("apiVersion", "kind") if not document.get(key)]
        if missing:
            raise ManifestError(f"{where}: {' and '.join(missing)} missing; is this a manifest?")
        if document["kind"] == "List":
            objects += document.get("items") or []
        else:
            objects.append(document)
    return objects


def render_yaml(value: Any) -> str:
    """A value as YAML, keys in their own order."""
    text: str = yaml.dump(
        value,
        Dumper=yaml.CSafeDumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=True,
    )
    return text
