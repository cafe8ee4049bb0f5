"""A patch that names a job or container which is not there is an error, never a new, broken job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.component.cases.test_rewritten_jobs import create, make_patch
from trainwright.api.kinds import TRAINJOB
from trainwright.base.errors import Forbidden, NotFound
from trainwright.machinery.api import PatchType

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.server.inprocess import InProcessApi


def patch_of_job(name: str) -> Object:
    patch = make_patch({"nodeSelector": {"zone": "a"}})
    patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]["name"] = name
    return patch


MISSES = [
    pytest.param(patch_of_job("nod"), ['"nod"', 'valid names: "node"'], id="job"),
    pytest.param(
        make_patch({"containers": [{"name": "trainer"}]}),
        ['"trainer"', 'container of job "node"', 'valid names: "node"'],
        id="container",
    ),
    pytest.param(
        make_patch({"initContainers": [{"name": "node"}]}),
        ['"node"', "init container", "valid names: none"],
        id="init container",
    ),
]


@pytest.mark.parametrize(("patch", "said"), MISSES)
async def test_a_new_job_with_a_patch_that_hits_nothing_is_refused(
    api: InProcessApi, patch: Object, said: list[str]
) -> None:
    with pytest.raises(Forbidden) as refused:
        await create(api, runtimePatches=[patch])
    assert all(text in str(refused.value) for text in said), refused.value
    with pytest.raises(NotFound):
        await api.get(TRAINJOB, "default", "tj")


@pytest.mark.parametrize(("patch", "said"), MISSES)
async def test_a_patch_that_hits_nothing_cannot_be_added_later(
    api: InProcessApi, patch: Object, said: list[str]
) -> None:
    job = await create(api, suspend=True)
    body = {"spec": {"runtimePatches": [patch]}}
    with pytest.raises(Forbidden) as refused:
        await api.patch(
            TRAINJOB, "default", "tj", body, type=PatchType.MERGE, field_manager="queue"
        )
    assert all(text in str(refused.value) for text in said), refused.value
    assert await api.get(TRAINJOB, "default", "tj") == job


async def test_one_miss_among_hits_is_enough(api: InProcessApi) -> None:
    good = make_patch({"nodeSelector": {"zone": "a"}}, "acme.io/good")
    with pytest.raises(Forbidden, match=r'manager "acme\.io/storage" names no job'):
        await create(api, runtimePatches=[good, patch_of_job("nod")])
