"""What a TrainJob with the torch policy may not ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import FieldError, Reason
from trainwright.core.plugins.torch import names
from trainwright.core.trainjob.resources import count_gpus, find_node_resources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainwright.api.trainjob import Trainer
    from trainwright.base.objects import Object
    from trainwright.core.plugins.base import Job
    from trainwright.core.trainjob.podset import PodSets


def find_errors(policy: Object, job: Job, podsets: PodSets) -> list[FieldError]:
    """Every finding of the Torch plugin. Source: Trainer 2.3, Torch validation."""
    found = list(_find_lost_targets(policy, job, podsets))
    trainer = job.trainjob.spec.trainer
    if trainer is not None:
        found += _find_reserved(trainer)
        found += _find_torchtune(trainer)
    return found


def find_warnings(job: Job, podsets: PodSets) -> list[str]:
    """What will hardly go well, though it is allowed."""
    trainer = job.trainjob.spec.trainer
    wanted = trainer.num_proc_per_node if trainer is not None else None
    gpus = count_gpus(find_node_resources(podsets))
    if wanted is None or not 0 < gpus < wanted:
        return []
    return [
        f"spec.trainer.numProcPerNode: {wanted} processes share the {gpus} GPU(s) of a node; "
        "leave it out for one process on each GPU"
    ]


def _find_lost_targets(policy: Object, job: Job, podsets: PodSets) -> Iterator[FieldError]:
    by_name = {podset.name: podset for podset in podsets}
    ref = {"kind": job.runtime.kind.kind, "name": job.runtime.name}
    for target in (policy.get("envInjection") or {}).get("targets") or ():
        job_name = target.get("jobName", "")
        podset = by_name.get(job_name)
        for container in target.get("containerNames") or ():
            if podset is None or not podset.has_container(container):
                yield FieldError(
                    Reason.INVALID,
                    "spec.runtimeRef",
                    ref,
                    f'the runtime injects variables into container "{container}" of job '
                    f'"{job_name}", which it does not have',
                )


def _find_reserved(trainer: Trainer) -> Iterator[FieldError]:
    seen = {str(variable.get("name")) for variable in trainer.env or ()}
    taken = sorted(seen.intersection(names.RESERVED))
    if taken:
        yield FieldError(
            Reason.INVALID,
            "spec.trainer.env",
            taken,
            f"{', '.join(taken)} are set by the Torch plugin; remove them, or set "
            "spec.trainer.numNodes and spec.trainer.numProcPerNode instead",
        )


def _find_torchtune(trainer: Trainer) -> Iterator[FieldError]:
    if trainer.command == names.TORCHTUNE_COMMAND:
        yield FieldError(
            Reason.INVALID,
            "spec.trainer.command",
            trainer.command,
            "recipes of torchtune are not supported yet; start the recipe through torchrun",
        )
