from __future__ import annotations

from typing import Any

import pytest

from trainwright.node.security import find_unmet


@pytest.mark.parametrize(
    ("shared", "own", "user", "expected"),
    [
        ({}, {}, 0, ""),
        ({"runAsUser": 7}, {}, 7, ""),
        ({"runAsUser": 7}, {"runAsUser": 8}, 8, ""),
        ({"runAsUser": 0}, {}, 8, "runs as user 8, not 0"),
        ({"runAsNonRoot": True}, {}, 8, ""),
        ({"runAsNonRoot": True}, {}, 0, "runs as root"),
        ({}, {"privileged": True}, 8, "gets no privileges"),
    ],
)
def test_what_a_process_does_not_get(
    shared: dict[str, Any], own: dict[str, Any], user: int, expected: str
) -> None:
    container = {"name": "main", "securityContext": own}
    pod = {"spec": {"securityContext": shared, "containers": [container]}}
    assert find_unmet(pod, user) == ((f"container main {expected}",) if expected else ())
