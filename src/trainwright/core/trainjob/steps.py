"""What `spec.initializer` and `spec.trainer` say about the pods of their steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainwright.api import wellknown
from trainwright.api.trainjob import Initializer
from trainwright.core.trainjob.variables import convert_variables

if TYPE_CHECKING:
    from trainwright.api.trainjob import InitializerStep, Trainer, TrainJob
    from trainwright.core.trainjob.podset import Container, PodSet, PodSets

CONTAINER_OF_STEP = {
    wellknown.ANCESTOR_TRAINER: wellknown.NODE,
    wellknown.ANCESTOR_DATASET_INITIALIZER: wellknown.ANCESTOR_DATASET_INITIALIZER,
    wellknown.ANCESTOR_MODEL_INITIALIZER: wellknown.ANCESTOR_MODEL_INITIALIZER,
}
"""The container that a step's fields are about, by ancestor."""


def apply_steps(trainjob: TrainJob, podsets: PodSets) -> PodSets:
    """The PodSets with the TrainJob's own values for each step.

    Source: Trainer 2.3, JobSet builder, initializer and trainer steps. This comes after the
    plugins, so variables of the user win over injected ones and keep their place.
    """
    return tuple(_apply_step(trainjob, podset) for podset in podsets)


def _apply_step(trainjob: TrainJob, podset: PodSet) -> PodSet:
    container_name = CONTAINER_OF_STEP.get(podset.ancestor)
    if container_name is None:
        return podset
    podset = replace(podset, replicas=1)
    if podset.is_trainer:
        trainer = trainjob.spec.trainer
        if trainer is None:
            return podset
        return podset.with_container(container_name, lambda c: _apply_trainer(trainer, c))
    initializer = trainjob.spec.initializer or Initializer()
    is_dataset = podset.ancestor == wellknown.ANCESTOR_DATASET_INITIALIZER
    step = initializer.dataset if is_dataset else initializer.model
    if step is None:
        return podset
    return podset.with_container(container_name, lambda c: _apply_initializer(step, c))


def _apply_trainer(trainer: Trainer, container: Container) -> Container:
    if trainer.image is not None:
        container = replace(container, image=trainer.image)
    if trainer.command is not None:
        container = replace(container, command=tuple(trainer.command))
    if trainer.args is not None:
        container = replace(container, args=tuple(trainer.args))
    return container.with_env(convert_variables(trainer.env))


def _apply_initializer(step: InitializerStep, container: Container) -> Container:
    if step.storage_uri is not None:
        uri = {"name": wellknown.STORAGE_URI, "value": step.storage_uri}
        container = container.with_env((uri,))
    container = container.with_env(convert_variables(step.env))
    if step.secret_ref is not None:
        source = {"secretRef": {"name": step.secret_ref.get("name", "")}}
        container = replace(container, env_from=(*container.env_from, source))
    return container
