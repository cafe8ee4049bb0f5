from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainwright.schema.columns import compile_path, find_values, render_age, render_cell

NOW = datetime(2026, 1, 2, tzinfo=UTC)
OBJ: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "labels": {"x.y/z": "v"},
        "creationTimestamp": "2026-01-01T23:59:15Z",
    },
    "spec": {"suspend": False, "n": 3, "half": 0.5},
    "status": {
        "conditions": [
            {"type": "Suspended", "status": "False", "code": 1},
            {"type": "Complete", "status": "True", "code": 2},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["a"]),
        ("{.metadata.name}", ["a"]),
        ("$.metadata.name", ["a"]),
        ("metadata.name", ["a"]),
        (".metadata.nope.deeper", []),
        (".status.conditions[-1:].type", ["Complete"]),
        (".status.conditions[-1].type", ["Complete"]),
        (".status.conditions[5].type", []),
        (".status.conditions[0:1].type", ["Suspended"]),
        (".status.conditions[*].type", ["Suspended", "Complete"]),
        ('.status.conditions[?(@.type=="Complete")].status', ["True"]),
        (".status.conditions[?(@.type=='Nope')].status", []),
        (".status.conditions[?(@.code >= 2)].type", ["Complete"]),
        (".status.conditions[?(@.code)].code", [1, 2]),
        (".metadata.labels['x.y/z']", ["v"]),
        (r".metadata.labels.x\.y/z", ["v"]),
        (".spec.*", [False, 3, 0.5]),
        ("..code", [1, 2]),
    ],
)
def test_path_finds(path: str, found: list[Any]) -> None:
    assert find_values(path, OBJ) == found


@pytest.mark.parametrize("path", [".a[", ".a[?(x)]", ".a[1", ".a b"])
def test_path_outside_the_subset_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="JSONPath"):
        compile_path(path)


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".metadata.name", "a"),
        ("string", ".spec.suspend", "false"),
        ("string", ".status.conditions[*].type", "Suspended,Complete"),
        ("integer", ".spec.n", 3),
        ("integer", ".metadata.name", None),
        ("number", ".spec.half", 0.5),
        ("boolean", ".spec.suspend", False),
        ("date", ".metadata.creationTimestamp", "45s"),
        ("date", ".metadata.name", "<invalid>"),
        ("string", ".spec.absent", None),
    ],
)
def test_cell_is_rendered_by_its_type(kind: str, path: str, cell: Any) -> None:
    assert render_cell({"type": kind, "jsonPath": path}, OBJ, NOW) == cell


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (3600, "60m"),
        (5 * 3600 + 1800, "5h30m"),
        (47 * 3600, "47h"),
        (52 * 3600, "2d4h"),
        (30 * 86400, "30d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_age_reads_as_kubectl_writes_it(seconds: float, text: str) -> None:
    assert render_age(seconds) == text
