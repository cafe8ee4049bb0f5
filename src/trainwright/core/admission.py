"""What admission does with each kind: one table, used by the embedded server and by webhooks alike.

The schema (pruning, schema defaults, schema validation, CEL) has been seen to before. Here are the
defaults and rules that a schema cannot say, for built-in kinds, JobSet and the Trainer's kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from trainwright.api.kinds import Kind
    from trainwright.base.errors import FieldError
    from trainwright.base.objects import Object


class Lookup(Protocol):
    """How a rule reads other objects, such as the runtime that a TrainJob names."""

    def __call__(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The committed object, or None."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One create (`old` is None) or update that asks to be admitted."""

    kind: Kind
    new: Object
    old: Object | None
    lookup: Lookup
    now: datetime
    subresource: str = ""
    warn: Callable[[str], None] = lambda _text: None
    """Takes what defaulting has to say to the client, which a verdict could not know any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What validation found: any error refuses the request; warnings go into Warning headers."""

    errors: Sequence[FieldError] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The rules of one kind. `default` returns a new object and never edits the request's."""

    default: Callable[[Request], Object] | None = None
    validate: Callable[[Request], Verdict] | None = None
    webhook_name: str = ""
    """Set where a real cluster runs these rules in a webhook: a refusal is then a 403
    `admission webhook "<name>" denied the request: ...` instead of a 422."""
    webhook_says_invalid: bool = False
    """Whether that webhook answers with the Status of an invalid object: the refusal is then a 422
    with its causes, and only its text says who refused."""


def build_admission() -> Mapping[Kind, Admission]:
    """The table of every kind that has rules beyond its schema; build it once.

    The modules are imported here because they import `Request` and `Verdict` from this one.
    """
    from trainwright.api import kinds
    from trainwright.core.builtin import cluster, config, definitions
    from trainwright.core.job.admission import default_job, validate_job
    from trainwright.core.jobset.admission import WEBHOOK_NAME, default_jobset, validate_jobset
    from trainwright.core.pods.admission import default_pod, validate_pod
    from trainwright.core.trainjob.admission import build_trainer_admission

    return {
        kinds.POD: Admission(default=default_pod, validate=validate_pod),
        kinds.SERVICE: Admission(
            default=cluster.default_service, validate=cluster.validate_service
        ),
        kinds.CONFIG_MAP: Admission(validate=config.validate_config_map),
        kinds.SECRET: Admission(default=config.default_secret, validate=config.validate_secret),
        kinds.NAMESPACE: Admission(default=cluster.default_namespace),
        kinds.PERSISTENT_VOLUME_CLAIM: Admission(
            default=cluster.default_claim, validate=cluster.validate_claim
        ),
        kinds.PRIORITY_CLASS: Admission(
            default=cluster.default_priority_class, validate=cluster.validate_priority_class
        ),
        kinds.LEASE: Admission(validate=cluster.validate_lease),
        kinds.EVENT: Admission(default=cluster.default_event, validate=cluster.validate_event),
        kinds.CUSTOM_RESOURCE_DEFINITION: Admission(
            default=definitions.default_definition, validate=definitions.validate_definition
        ),
        kinds.JOB: Admission(default=default_job, validate=validate_job),
        kinds.JOBSET: Admission(
            default=default_jobset,
            validate=validate_jobset,
            webhook_name=WEBHOOK_NAME,
            webhook_says_invalid=True,
        ),
        **build_trainer_admission(),
    }
