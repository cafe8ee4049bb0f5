"""Whatever JSON a client sends: the schema names what is misshapen, and rules do not fall over."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from trainwright.api import kinds
from trainwright.api.schemas.registry import schema_of
from trainwright.core.admission import Request, build_admission
from trainwright.schema.defaulting import apply_defaults
from trainwright.schema.pruning import prune
from trainwright.schema.validation import find_schema_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Json, Object

CONTAINER = {
    "name": "a",
    "image": "x",
    "ports": [{"containerPort": 1}],
    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "resources": {"limits": {"cpu": "1"}},
    "readinessProbe": {"httpGet": {"port": 1}},
    "volumeMounts": [{"name": "v", "mountPath": "/a"}],
}
VOLUME = {"name": "v", "projected": {"sources": [{"downwardAPI": {"items": [{"path": "a"}]}}]}}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object"}},
}
OBJECTS: dict[Kind, Object] = {
    kinds.POD: {
        "spec": {"containers": [CONTAINER], "volumes": [VOLUME], "tolerations": [{"key": "a"}]}
    },
    kinds.SERVICE: {"spec": {"ports": [{"port": 1}], "selector": {"a": "b"}}},
    kinds.SECRET: {"stringData": {"a": "b"}, "data": {"c": "ZA=="}},
    kinds.CONFIG_MAP: {"data": {"a": "b"}, "binaryData": {"b": "YQ=="}},
    kinds.NAMESPACE: {"spec": {}},
    kinds.CUSTOM_RESOURCE_DEFINITION: {
        "spec": {
            "group": "acme.io",
            "scope": "Cluster",
            "names": {"kind": "A", "plural": "as"},
            "versions": [VERSION],
        }
    },
    kinds.PERSISTENT_VOLUME_CLAIM: {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    },
}
MISSHAPEN: tuple[Json, ...] = ("x", 5, [1], {"a": 1}, None, True, [], {}, [None], 1.5)


def find_places(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, (dict, list)):
        below = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in below:
            yield from find_places(item, (*path, key))


def replaced(obj: Object, path: tuple[Any, ...], value: Json) -> Object:
    new: Any = copy.deepcopy(obj)
    holder = new
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    result: Object = new
    return result


@pytest.mark.parametrize("kind", OBJECTS, ids=lambda kind: kind.kind)
def test_misshapen_parts_are_left_to_the_schema(kind: Kind) -> None:
    schema, rules = schema_of(kind), build_admission()[kind]
    assert schema is not None
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}}
    judged = 0
    for path in find_places(OBJECTS[kind]):
        for value in MISSHAPEN:
            sent = {**obj, **replaced(OBJECTS[kind], path, value)}
            new = apply_defaults(schema, prune(schema, sent)[0])
            if find_schema_errors(schema, new):
                continue
            request = Request(
                kind=kind,
                new=new,
                old=None,
                lookup=lambda _kind, _namespace, _name: None,
                now=datetime(2026, 1, 1, tzinfo=UTC),
            )
            new = rules.default(request) if rules.default else new
            if rules.validate and not find_schema_errors(schema, new):
                rules.validate(replace(request, new=new))
                judged += 1
    assert judged or rules.validate is None


def test_the_library_of_rules_is_not_loaded_before_a_rule_is() -> None:
    program = (
        "import sys; from trainwright.core.admission import build_admission; build_admission(); "
        "sys.exit(any('cel_expr' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
