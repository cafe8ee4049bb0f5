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


def build_admission() -> Mapping[Kind, Admission]:
    """The table of every kind that has rules beyond its schema."""
    return {}
