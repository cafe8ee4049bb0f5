"""Whether an apply would change anything, told from the live object alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainwright.api.kinds import JOBSET
from trainwright.api.schemas.registry import schema_of
from trainwright.core.trainjob.sameness import is_applied
from trainwright.merge.structured import apply_config

if TYPE_CHECKING:
    from trainwright.base.objects import Object


def jobset(cpu: str = "1000m", value: str = "1000m", **metadata: Any) -> Object:
    container = {
        "name": "node",
        "env": [{"name": "A", "value": value}],
        "resources": {"requests": {"cpu": cpu}},
    }
    pod = {"template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": JOBSET.api_version,
        "kind": "JobSet",
        "metadata": {"name": "j", "namespace": "ml", **metadata},
        "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": pod}}]},
    }


def stored(obj: Object, manager: str = "trainer") -> Object:
    result = apply_config(
        live=None,
        config=obj,
        managed=[],
        manager=manager,
        force=True,
        schema=schema_of(JOBSET),
        api_version=obj["apiVersion"],
        now="2026-01-01T00:00:00Z",
    )
    metadata = result.obj["metadata"] | {"managedFields": result.managed_fields, "uid": "u"}
    defaulted = result.obj["spec"] | {"network": {"enableDNSHostnames": True}}
    return result.obj | {"metadata": metadata, "spec": defaulted, "status": {"restarts": 0}}


@pytest.mark.parametrize(
    ("desired", "same"),
    [
        pytest.param(jobset(), True, id="as it was applied"),
        pytest.param(jobset(cpu="1"), True, id="a quantity spelled otherwise"),
        pytest.param(jobset(cpu="2"), False, id="another quantity"),
        pytest.param(jobset(value="1"), False, id="a text is no quantity"),
        pytest.param(jobset(labels={"a": "b"}), False, id="one more label"),
    ],
)
def test_only_what_differs_is_applied_again(desired: Object, same: bool) -> None:
    assert is_applied(desired, stored(jobset()), schema_of(JOBSET)) is same


def test_what_is_no_longer_wanted_is_a_difference() -> None:
    live = stored(jobset(labels={"a": "b"}))
    assert not is_applied(jobset(), live, schema_of(JOBSET))


def test_an_object_that_somebody_else_applied_is_not_ours_yet() -> None:
    assert not is_applied(jobset(), stored(jobset(), "somebody"), schema_of(JOBSET))
    assert not is_applied(jobset(), jobset(), schema_of(JOBSET))
