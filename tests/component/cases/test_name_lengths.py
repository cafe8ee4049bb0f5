"""A name that is legal for a job may be too long for what is made from it: nothing would ever run.

The longest name is computed when the job is admitted; it must be the one that JobSet accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.core.trainjob.factories import NOW, make_job, make_runtime, make_trainjob
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, JOBSET, TRAINJOB, Kind
from trainwright.api.trainjob import parse_runtime, parse_trainjob
from trainwright.core.admission import Request
from trainwright.core.jobset.admission import default_jobset, validate_jobset
from trainwright.core.trainjob.admission import validate_trainjob
from trainwright.core.trainjob.build import build_job, build_objects

if TYPE_CHECKING:
    from trainwright.base.errors import FieldError
    from trainwright.base.objects import Object

RUNTIMES = {
    "plain": make_runtime(),
    "with a dataset initializer": make_runtime(
        make_job("dataset-initializer", "dataset-initializer"), make_job()
    ),
    "with a long job name": make_runtime(make_job("n" * 30)),
}


def request(kind: Kind, new: Object, runtime: Object | None = None) -> Request:
    def lookup(kind: Kind, namespace: str, name: str) -> Object | None:
        del namespace, name
        return runtime if kind == CLUSTER_TRAINING_RUNTIME else None

    return Request(kind=kind, new=new, old=None, lookup=lookup, now=NOW)


def refused_by_jobset(trainjob: Object, runtime: Object) -> bool:
    objects = build_objects(build_job(parse_trainjob(trainjob), parse_runtime(runtime)))
    jobset = default_jobset(request(JOBSET, objects[-1]))
    return bool(validate_jobset(request(JOBSET, jobset)).errors)


def errors_at_admission(trainjob: Object, runtime: Object) -> list[FieldError]:
    return list(validate_trainjob(request(TRAINJOB, trainjob, runtime)).errors)


@pytest.mark.parametrize("nodes", [1, 10, 11, 1000])
@pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES.keys())
def test_admission_refuses_exactly_the_names_that_jobset_refuses(
    runtime: Object, nodes: int
) -> None:
    lengths = range(1, 64)
    accepted = []
    for length in lengths:
        trainjob = make_trainjob("a" * length, trainer={"numNodes": nodes})
        errors = errors_at_admission(trainjob, runtime)
        assert bool(errors) == refused_by_jobset(trainjob, runtime), length
        if not errors:
            accepted.append(length)
        else:
            assert [error.path for error in errors] == ["metadata.name"]
            assert f"no longer than {max(accepted)} characters" in errors[0].message
    assert accepted == list(range(1, len(accepted) + 1))
    assert len(accepted) < len(lengths)


def test_a_suspended_job_is_admitted_since_its_conditions_can_say_it() -> None:
    runtime = RUNTIMES["plain"]
    trainjob = make_trainjob("a" * 63, suspend=True)
    assert errors_at_admission(trainjob, runtime) == []
    assert refused_by_jobset(trainjob, runtime)
