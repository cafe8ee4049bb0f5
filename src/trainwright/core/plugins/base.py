"""What a plugin is: a small frozen class with a name, the policy it serves, and some abilities.

The engine asks `applies_to`, hands a plugin its own policy, and calls the abilities it has. A
plugin never checks whether it should have been called, and never names another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.api.trainjob import TrainingRuntime, TrainJob
    from trainwright.base.errors import FieldError
    from trainwright.base.objects import Object
    from trainwright.core.trainjob.podset import PodSets
    from trainwright.core.trainjob.settings import TrainJobSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What plugins may know about the TrainJob besides its PodSets."""

    trainjob: TrainJob
    runtime: TrainingRuntime
    settings: TrainJobSettings
    subdomain: str
    """The DNS subdomain of every pod of the job."""
    metadata: Object
    """Labels and annotations for the workload object."""
    template: Object
    """The runtime's JobSet spec after `spec.runtimePatches`."""

    @property
    def name(self) -> str:
        """The TrainJob's name, which its workload shares."""
        return self.trainjob.name


class Plugin(Protocol):
    """The part every plugin has."""

    @property
    def name(self) -> str:
        """Name in docs, errors and `render`."""
        ...

    @property
    def policy_key(self) -> str:
        """The key of `spec.mlPolicy` it is handed; empty when it needs none."""
        ...

    def applies_to(self, ml_policy: Object | None) -> bool:
        """Whether a runtime with this `spec.mlPolicy` wants the plugin."""
        ...


@runtime_checkable
class EnforcesPolicy(Protocol):
    """An ability: shape the PodSets after an ML policy."""

    def enforce_policy(self, policy: Object, job: Job, podsets: PodSets) -> PodSets:
        """The PodSets as the policy wants them."""
        ...


@runtime_checkable
class FindsErrors(Protocol):
    """An ability: say at admission what could not work."""

    def find_errors(self, policy: Object, job: Job, podsets: PodSets) -> Sequence[FieldError]:
        """Every finding, with its JSON path in the TrainJob."""
        ...


@runtime_checkable
class FindsWarnings(Protocol):
    """An ability: say at admission what is allowed and will hardly go well."""

    def find_warnings(self, policy: Object, job: Job, podsets: PodSets) -> Sequence[str]:
        """Texts for Warning headers, each beginning with a JSON path in the TrainJob."""
        ...


@runtime_checkable
class ExplainsVariables(Protocol):
    """An ability: say why variables that the plugin chose have their values."""

    def explain_variables(self, policy: Object, job: Job, podsets: PodSets) -> Mapping[str, str]:
        """Reasons by name of variable; `podsets` are those before any policy was enforced."""
        ...


@runtime_checkable
class BuildsObjects(Protocol):
    """An ability: render the finished PodSets into objects to apply."""

    def build_objects(self, job: Job, podsets: PodSets) -> Sequence[Object]:
        """The objects, in the order in which they are to be applied."""
        ...
