"""PlainML: so many nodes, the user's variables, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainwright.api import wellknown
from trainwright.core.plugins.plainml import names
from trainwright.core.trainjob.podset import find_trainer, replace_podset
from trainwright.core.trainjob.variables import convert_variables

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.core.plugins.base import Job
    from trainwright.core.trainjob.podset import PodSets


@dataclass(frozen=True, slots=True)
class PlainMLPlugin:
    """Serves runtimes without an ML policy, and policies that leave counting to it."""

    name: str = "PlainML"
    policy_key: str = ""

    def applies_to(self, ml_policy: Object | None) -> bool:
        """Whether no policy is there that counts nodes by itself."""
        return not any((ml_policy or {}).get(key) is not None for key in names.SELF_SUFFICIENT)

    def enforce_policy(self, policy: Object, job: Job, podsets: PodSets) -> PodSets:
        """Set the trainer's node count and variables from `spec.trainer`.

        Source: Trainer 2.3, PlainML plugin.
        """
        del policy
        trainer, spec = find_trainer(podsets), job.trainjob.spec.trainer
        if trainer is None or spec is None:
            return podsets
        if spec.num_nodes is not None:
            trainer = replace(trainer, count=spec.num_nodes)
        env = convert_variables(spec.env)
        trainer = trainer.with_container(wellknown.NODE, lambda c: c.with_env(env))
        return replace_podset(podsets, trainer)
