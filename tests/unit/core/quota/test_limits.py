from __future__ import annotations

from typing import Any

import pytest

from trainwright.core.quota.limits import apply_limit_ranges, find_limit_errors


def make_range(**limit: Any) -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", **limit}]}}


def make_pod(**resources: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "a", "resources": resources}]}}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}),
        ({"limits": {"cpu": "4"}}, {"limits": {"cpu": "4"}, "requests": {"cpu": "4"}}),
        ({"requests": {"cpu": "3"}}, {"limits": {"cpu": "2"}, "requests": {"cpu": "3"}}),
    ],
)
def test_open_resources_get_the_ranges_defaults(
    own: dict[str, Any], expected: dict[str, Any]
) -> None:
    pod = make_pod(**own)
    limit_range = make_range(default={"cpu": "2"}, defaultRequest={"cpu": "1"})
    new = apply_limit_ranges(pod, [limit_range])
    assert new["spec"]["containers"][0]["resources"] == expected
    assert pod == make_pod(**own)
    assert apply_limit_ranges(pod, []) == pod


@pytest.mark.parametrize(
    ("limit", "resources", "words"),
    [
        ({"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, "maximum cpu usage per Container is 1"),
        ({"max": {"cpu": "1"}}, {}, "No limit is specified"),
        ({"min": {"cpu": "1"}}, {"requests": {"cpu": "1m"}}, "but request is 1m"),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
            "but is 3.000000",
        ),
        (
            {"type": "Pod", "max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}},
            "maximum cpu usage per Pod is 1, but limit is 2",
        ),
    ],
)
def test_pod_outside_the_bounds_is_refused(
    limit: dict[str, Any], resources: dict[str, Any], words: str
) -> None:
    (error,) = find_limit_errors(make_pod(**resources), [make_range(**limit)])
    assert words in error


def test_pod_inside_the_bounds_passes() -> None:
    limit_range = make_range(max={"cpu": "2"}, min={"cpu": "1"}, maxLimitRequestRatio={"cpu": "2"})
    pod = make_pod(limits={"cpu": "2"}, requests={"cpu": "1"})
    assert find_limit_errors(pod, [limit_range]) == []
