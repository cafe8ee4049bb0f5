"""Everything that a structural schema says of an object: its own checks, then its CEL rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.errors import Reason
from trainwright.schema.rules import find_rule_errors
from trainwright.schema.validation import find_schema_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.errors import FieldError
    from trainwright.base.objects import Object

_BLOCKING = frozenset(
    {
        Reason.REQUIRED,
        Reason.NOT_SUPPORTED,
        Reason.TOO_LONG,
        Reason.TOO_MANY,
        Reason.TYPE_INVALID,
    }
)
"""After these a rule could not be trusted, or would cost too much."""


def find_errors(
    schema: Mapping[str, Any], obj: Object, old: Object | None = None
) -> list[FieldError]:
    """All findings in an object; `old` is what it replaces.

    Source: Kubernetes, CustomResourceDefinition validation: rules are left out beside findings that
    say that the object is not even of the right shape.
    """
    errors = find_schema_errors(schema, obj)
    if any(error.reason in _BLOCKING for error in errors):
        return errors
    return errors + find_rule_errors(schema, obj, old)
