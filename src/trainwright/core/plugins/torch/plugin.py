"""Torch: how many nodes and processes, and where rank 0 listens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainwright.api import wellknown
from trainwright.core.plugins.torch import names, validate
from trainwright.core.trainjob.podset import find_trainer, replace_podset
from trainwright.core.trainjob.resources import count_cpus, count_gpus, find_node_resources
from trainwright.core.trainjob.variables import convert_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainwright.base.errors import FieldError
    from trainwright.base.objects import Object
    from trainwright.core.plugins.base import Job
    from trainwright.core.trainjob.podset import Container, PodSet, PodSets


@dataclass(frozen=True, slots=True)
class TorchPlugin:
    """Serves `spec.mlPolicy.torch`."""

    name: str = "Torch"
    policy_key: str = "torch"

    def applies_to(self, ml_policy: Object | None) -> bool:
        """Whether the policy asks for torch; an empty object does."""
        return (ml_policy or {}).get(self.policy_key) is not None

    def find_errors(self, policy: Object, job: Job, podsets: PodSets) -> Sequence[FieldError]:
        """Reserved variables, lost injection targets, commands of torchtune."""
        return validate.find_errors(policy, job, podsets)

    def find_warnings(self, policy: Object, job: Job, podsets: PodSets) -> Sequence[str]:
        """More processes than a node has GPUs."""
        del policy
        return validate.find_warnings(job, podsets)

    def explain_variables(self, policy: Object, job: Job, podsets: PodSets) -> Mapping[str, str]:
        """Why so many processes."""
        del policy
        return {names.PROCESSES_PER_NODE: choose_processes(job, podsets)[1]}

    def enforce_policy(self, policy: Object, job: Job, podsets: PodSets) -> PodSets:
        """Scale the trainer PodSet and give its pods their rendezvous variables and port.

        Source: Trainer 2.3, Torch plugin. Differs: also without `spec.trainer` (a setting), from
        the merged resources, and with the real job name and subdomain in the address.
        """
        trainer = find_trainer(podsets)
        if trainer is None:
            return podsets
        spec = job.trainjob.spec.trainer
        if spec is not None and spec.num_nodes is not None:
            trainer = replace(trainer, count=spec.num_nodes)
        variables = build_rendezvous(job, trainer, choose_processes(job, podsets)[0])
        if spec is not None or job.settings.inject_without_trainer:

            def prepare(container: Container) -> Container:
                container = container.with_env(
                    convert_variables(spec.env if spec is not None else None)
                )
                return container.with_env(variables).with_ports((rendezvous_port(),))

            trainer = trainer.with_container(wellknown.NODE, prepare)
        podsets = replace_podset(podsets, trainer)
        for job_name, container_name in injection_targets(policy):
            podsets = tuple(
                podset.with_any_container(container_name, lambda c: c.with_env(variables))
                if podset.name == job_name
                else podset
                for podset in podsets
            )
        return podsets


def rendezvous_port() -> Object:
    """The container port that rank 0 listens on."""
    return {"containerPort": wellknown.TRAINER_PORT}


def injection_targets(policy: Object) -> Iterator[tuple[str, str]]:
    """Pairs of (job name, container name) of `envInjection`, in order."""
    for target in (policy.get("envInjection") or {}).get("targets") or ():
        for container in target.get("containerNames") or ():
            yield target.get("jobName", ""), container


def choose_processes(job: Job, podsets: PodSets) -> tuple[str, str]:
    """Processes of one node, and why: as said, else `auto` with a GPU, else one per CPU core."""
    trainer = job.trainjob.spec.trainer
    if trainer is not None and trainer.num_proc_per_node is not None:
        return str(trainer.num_proc_per_node), "spec.trainer.numProcPerNode"
    resources = find_node_resources(podsets)
    gpus = count_gpus(resources)
    if gpus > 0:
        return names.AUTO, f"torchrun starts one for each of the {gpus} GPUs of a node"
    cpus = count_cpus(resources)
    if cpus > 0:
        return str(cpus), f"one for each of the {cpus} CPU cores of a node"
    return "1", "a node states neither GPUs nor CPU cores"


def build_rendezvous(job: Job, trainer: PodSet, processes: str) -> tuple[Object, ...]:
    """The five variables, in injection order."""
    address = f"{job.name}-{trainer.name}-0-0.{job.subdomain}"
    rank = f"metadata.annotations['{wellknown.COMPLETION_INDEX_LABEL}']"
    return (
        {"name": names.NUM_NODES, "value": str(trainer.count)},
        {"name": names.PROCESSES_PER_NODE, "value": processes},
        {"name": names.NODE_RANK, "valueFrom": {"fieldRef": {"fieldPath": rank}}},
        {"name": names.MASTER_ADDRESS, "value": address},
        {"name": names.MASTER_PORT, "value": str(wellknown.TRAINER_PORT)},
    )
