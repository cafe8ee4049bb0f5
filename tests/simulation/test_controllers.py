"""Nothing lost, doubled or left over, whatever the watches miss and wherever the process dies.

`SIMULATION_SEEDS=5000` runs more seeds; a failure names its scenario and seed.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulation.store import is_live
from tests.simulation.world import World, finish, job_name_of
from trainwright.api.kinds import (
    CLUSTER_TRAINING_RUNTIME,
    CONFIG_MAP,
    JOB,
    JOBSET,
    POD,
    SERVICE,
    TRAINJOB,
)
from trainwright.base.objects import dig, is_condition_true, labels_of, name_of, uid_of
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.machinery.api import DeleteOptions

if TYPE_CHECKING:
    from trainwright.base.objects import Object

SEEDS = int(os.environ.get("SIMULATION_SEEDS", "300"))
TRACKING = "batch.kubernetes.io/job-tracking"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"


@dataclass
class Script:
    """How pods end: how often each Job's pods fail, by restart attempt."""

    failures: dict[int, int] = field(default_factory=dict)
    """Failing pods of each Job in an attempt; all others succeed."""
    told: Counter[tuple[str, str]] = field(default_factory=Counter)

    def outcome(self, pod: Object) -> int:
        attempt = labels_of(pod)[ATTEMPT]
        key = (job_name_of(pod), attempt)
        if self.told[key] < self.failures.get(int(attempt), 0):
            self.told[key] += 1
            return 3
        return 0


def make_jobset(
    *, backoff_limit: int = 0, replicas: int = 1, job: Object | None = None, **spec: Any
) -> Object:
    more = job or {}

    def replicated_job(name: str, **fields: Any) -> Object:
        pod = {"containers": [{"name": "c"}], "restartPolicy": "Never"}
        job = {
            "parallelism": 2,
            "completions": 2,
            "completionMode": "Indexed",
            "backoffLimit": backoff_limit,
            "template": {"spec": pod},
            **more,
        }
        return {"name": name, "replicas": replicas, "template": {"spec": job}, **fields}

    after = [{"name": "a", "status": "Complete"}]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "js", "namespace": "team"},
        "spec": {"replicatedJobs": [replicated_job("a"), replicated_job("b", dependsOn=after)]}
        | spec,
    }


def run(seed: int, jobset: Object, script: Script, *changes: Any, steps: int = 120) -> World:
    """What becomes of the JobSet."""
    world = World(seed, outcome=script.outcome)
    finish(world.store.create(JOBSET, jobset))
    go_on(world, *changes, steps=steps)
    return world


def go_on(world: World, *changes: Any, steps: int = 120) -> None:
    """Random steps with the changes at random moments, then rest."""
    moments = sorted(world.rng.sample(range(steps), len(changes)))
    todo = dict(zip(moments, changes, strict=True))
    for moment in range(steps):
        if moment in todo:
            todo[moment](world)
        world.step()
    world.settle()


def check_tidy(world: World) -> None:
    """No pod waits for being counted, and none outlives its Job's end."""
    for pod in world.store.all(POD):
        assert TRACKING not in dig(pod, "metadata", "finalizers", default=())
        assert not is_live(pod)
    for job in world.store.all(JOB):
        assert not dig(job, "status", "uncountedTerminatedPods")
        assert not dig(job, "status", "active")


def check_completed(world: World, *, restarts: int = 0, failed: int = 0) -> None:
    (jobset,) = world.store.all(JOBSET)
    assert dig(jobset, "status", "terminalState") == "Completed"
    assert dig(jobset, "status", "restarts") == restarts
    jobs = world.store.all(JOB)
    assert [name_of(job) for job in jobs] == ["js-a-0", "js-b-0"]
    for job in jobs:
        assert is_condition_true(job, "Complete")
        assert dig(job, "status", "completedIndexes") == "0,1"
        assert dig(job, "status", "failed", default=0) == failed
        assert labels_of(job)[ATTEMPT] == str(restarts)
    check_tidy(world)


def succeed(seed: int) -> None:
    check_completed(run(seed, make_jobset(), Script()))


def retry_pods(seed: int) -> None:
    """Each failed pod is counted once and replaced once."""
    failures = 1 + seed % 3
    world = run(seed, make_jobset(backoff_limit=3), Script({0: failures}))
    check_completed(world, failed=failures)


def restart(seed: int) -> None:
    strategy = ("Recreate", "BlockingRecreate")[seed % 2]
    policy = {"maxRestarts": 2, "restartStrategy": strategy}
    check_completed(run(seed, make_jobset(failurePolicy=policy), Script({0: 1, 1: 1})), restarts=2)


def run_out_of_restarts(seed: int) -> None:
    jobset = make_jobset(failurePolicy={"maxRestarts": 1})
    world = run(seed, jobset, Script({0: 1, 1: 1, 2: 1}))
    (jobset,) = world.store.all(JOBSET)
    assert is_condition_true(jobset, "Failed")
    assert dig(jobset, "status", "restarts") == 1
    assert dig(jobset, "status", "terminalState") == "Failed"
    check_tidy(world)


def _set(**spec: Any) -> Any:
    def change(world: World) -> None:
        if world.store.find(JOBSET, "team", "js") is not None:
            finish(world.store.patch(JOBSET, "team", "js", {"spec": spec}))

    return change


def suspend_and_resume(seed: int) -> None:
    """Pods stopped by suspension are no failures."""
    world = run(seed, make_jobset(), Script(), _set(suspend=True), _set(suspend=False))
    check_completed(world)


def suspend_for_good(seed: int) -> None:
    world = run(seed, make_jobset(suspend=True), Script())
    assert [name_of(job) for job in world.store.all(JOB)] == ["js-a-0"]
    assert world.store.all(POD) == []
    (jobset,) = world.store.all(JOBSET)
    assert is_condition_true(jobset, "Suspended")


def delete(seed: int) -> None:
    """Whatever the moment and the policy, nothing is left over."""
    propagation = ("Background", "Foreground")[seed % 2]

    def change(world: World) -> None:
        options = DeleteOptions(propagation=propagation)
        finish(world.store.delete(JOBSET, "team", "js", options))

    jobset = make_jobset(backoff_limit=3, failurePolicy={"maxRestarts": 3})
    world = run(seed, jobset, Script({0: 2}), change)
    for kind in (JOBSET, JOB, POD, SERVICE):
        assert world.store.all(kind) == []


def _preempt(deleted: list[str]) -> Any:
    """Somebody deletes a pod that runs."""

    def change(world: World) -> None:
        running = [pod for pod in world.store.all(POD) if is_live(pod)]
        if running:
            pod = world.rng.choice(running)
            deleted.append(name_of(pod))
            options = DeleteOptions(uid=uid_of(pod))
            finish(world.store.delete(POD, "team", name_of(pod), options))

    return change


def lose_pods(seed: int) -> None:
    """A deleted pod is one failure and is replaced, at once or after its end."""
    policy = ("TerminatingOrFailed", "Failed")[seed % 2]
    deleted: list[str] = []
    jobset = make_jobset(backoff_limit=6, job={"podReplacementPolicy": policy})
    world = run(seed, jobset, Script(), *[_preempt(deleted)] * 3)
    for job in world.store.all(JOB):
        assert is_condition_true(job, "Complete")
        mine = [name for name in deleted if name.startswith(f"{name_of(job)}-")]
        assert dig(job, "status", "failed", default=0) == len(mine)
    check_tidy(world)


def without_indexes(seed: int) -> None:
    """Successes of pods without an index are counted once each."""
    job = {"completionMode": "NonIndexed", "completions": 3}
    failures = seed % 3
    world = run(seed, make_jobset(backoff_limit=3, job=job), Script({0: failures}))
    jobs = world.store.all(JOB)
    assert [name_of(job) for job in jobs] == ["js-a-0", "js-b-0"]
    for job in jobs:
        assert is_condition_true(job, "Complete")
        assert dig(job, "status", "succeeded") == 3
        assert dig(job, "status", "failed", default=0) == failures
    check_tidy(world)


def orphan(seed: int) -> None:
    """Pods of a Job that is deleted as kubectl's raw API does it stay, without ties."""

    def change(world: World) -> None:
        for job in world.store.all(JOB):
            options = DeleteOptions(propagation="Orphan", uid=uid_of(job))
            finish(world.store.delete(JOB, "team", name_of(job), options))

    world = run(seed, make_jobset(), Script(), change)
    (jobset,) = world.store.all(JOBSET)
    assert dig(jobset, "status", "terminalState") == "Completed"
    jobs = {uid_of(job) for job in world.store.all(JOB)}
    for pod in world.store.all(POD):
        owner = dig(pod, "metadata", "ownerReferences", 0, "uid")
        assert owner is None or owner in jobs
    check_tidy(world)


def expire(seed: int) -> None:
    world = run(seed, make_jobset(ttlSecondsAfterFinished=60), Script())
    for kind in (JOBSET, JOB, POD, SERVICE):
        assert world.store.all(kind) == []


def _make_trainjob() -> Object:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "js", "namespace": "team"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 3}},
    }


def _run_trainjob(seed: int, *changes: Any) -> World:
    script = Script()
    world = World(seed, outcome=script.outcome)
    for runtime in load_shipped_runtimes():
        if name_of(runtime) == "torch-distributed":
            finish(world.store.create(CLUSTER_TRAINING_RUNTIME, runtime))
    finish(world.store.create(TRAINJOB, _make_trainjob()))
    go_on(world, *changes)
    return world


def train(seed: int) -> None:
    """One JobSet, one snapshot, three nodes, and the TrainJob says that it is complete."""
    world = _run_trainjob(seed)
    (trainjob,), (jobset,) = world.store.all(TRAINJOB), world.store.all(JOBSET)
    assert is_condition_true(trainjob, "Complete")
    assert dig(trainjob, "status", "jobsStatus", 0, "succeeded") == 1
    assert dig(jobset, "status", "restarts") == 0
    assert [name_of(config) for config in world.store.all(CONFIG_MAP)] == ["js-runtime-snapshot"]
    (job,) = world.store.all(JOB)
    assert dig(job, "status", "completedIndexes") == "0-2"
    check_tidy(world)


def delete_trainjob(seed: int) -> None:
    def change(world: World) -> None:
        options = DeleteOptions(propagation=("Background", "Foreground")[seed % 2])
        finish(world.store.delete(TRAINJOB, "team", "js", options))

    world = _run_trainjob(seed, change)
    for kind in (TRAINJOB, CONFIG_MAP, JOBSET, JOB, POD, SERVICE):
        assert world.store.all(kind) == []


SCENARIOS = (
    train,
    delete_trainjob,
    succeed,
    retry_pods,
    restart,
    run_out_of_restarts,
    suspend_and_resume,
    suspend_for_good,
    delete,
    expire,
    lose_pods,
    without_indexes,
    orphan,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_ends_as_it_must(scenario: Any) -> None:
    first = SCENARIOS.index(scenario)
    for seed in range(first, SEEDS, len(SCENARIOS)):
        try:
            scenario(seed)
        except Exception as error:
            error.add_note(f"scenario {scenario.__name__}, seed {seed}")
            raise


def test_bad_luck_does_happen() -> None:
    """The simulation is worth nothing if no process ever dies in it."""
    worlds = [run(seed, make_jobset(), Script()) for seed in range(10)]
    assert sum(world.crashes for world in worlds) > 5
