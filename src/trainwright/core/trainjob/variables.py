"""Environment variables of a TrainJob, as pods get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainwright.base.objects import Object


def convert_variables(env: Iterable[Object] | None) -> tuple[Object, ...]:
    """The TrainJob's variables in the form in which its JobSet carries them.

    Source: Trainer 2.3: a variable without a source gets its value even when that is empty, and
    `fieldRef.apiVersion` is dropped. Differs: `fileKeyRef` is carried over.
    """
    return tuple(_convert(variable) for variable in env or ())


def _convert(variable: Object) -> Object:
    source = variable.get("valueFrom")
    if source is None:
        return {"name": variable["name"], "value": variable.get("value", "")}
    field = source.get("fieldRef")
    if field is None:
        return variable
    kept = {key: value for key, value in field.items() if key != "apiVersion"}
    return variable | {"valueFrom": source | {"fieldRef": kept}}
