"""TrainJobs of Trainer 2.0 to 2.2 in today's form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import FieldError, InvalidObject, Reason
from trainwright.base.objects import dig, name_of, namespace_of
from trainwright.core.conversion.overrides import (
    MAX_PATCHES,
    SPEC_OVERRIDES,
    TEMPLATE_OVERRIDES,
    build_patches,
    is_converted,
    list_of,
    target_names,
)
from trainwright.merge.quantity import is_quantity, parse_quantity, to_integer_ceiling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainwright.base.objects import Json, Object, ObjectView

OLD_FIELDS = {
    SPEC_OVERRIDES: "2.0",
    TEMPLATE_OVERRIDES: "2.1",
    "labels": "2.0 and 2.1",
    "annotations": "2.0 and 2.1",
}
"""Fields of a spec that became runtime patches, and the Trainers that had them."""

_PATCHES = "runtimePatches"
_LISTS = (SPEC_OVERRIDES, TEMPLATE_OVERRIDES)
PROCESS_WORDS = ("auto", "gpu", "cpu")
"""Words that `numProcPerNode` could be before it became a number."""


def convert_trainjob(obj: Object, old: ObjectView | None = None) -> tuple[Object, list[str]]:
    """Move what older Trainers understood to where it acts today.

    Args:
        obj: the TrainJob as it was sent; it is not edited.
        old: the stored TrainJob on an update. Patches that it has already are no contradiction to
            old fields: a manifest can be applied again after a queue has added a patch of its own.

    Returns:
        The TrainJob in today's form, the same object when nothing was old, and one warning for
        each field that was converted.

    Raises:
        InvalidObject: what `find_conversion_errors` finds.

    Source: Trainer 2.0 and 2.1 (podSpecOverrides, podTemplateOverrides, labels, annotations,
    words for numProcPerNode). Differs: Trainer 2.2 and later drop these fields silently.
    """
    if not is_old(obj):
        return obj, []
    errors = find_conversion_errors(obj, old)
    if errors:
        raise InvalidObject(f"TrainJob {namespace_of(obj)}/{name_of(obj)}", errors)
    spec, warnings = _convert_overrides(obj["spec"])
    spec, more = _convert_processes(spec)
    return {**obj, "spec": spec}, [*warnings, *more]


def is_old(obj: ObjectView) -> bool:
    """Whether the TrainJob holds anything that only older Trainers understood."""
    spec = dig(obj, "spec", default={})
    return any(key in spec for key in OLD_FIELDS) or isinstance(
        dig(spec, "trainer", "numProcPerNode"), str
    )


def find_conversion_errors(obj: ObjectView, old: ObjectView | None = None) -> list[FieldError]:
    """Why a TrainJob cannot be converted: two forms at once, or values no Trainer understood."""
    spec = dig(obj, "spec", default={})
    return [
        *_find_mixed_forms(spec, dig(old, "spec", default={})),
        *_find_missing_targets(spec),
        *_find_overflow(spec),
        *_find_word_errors(spec),
    ]


def _find_mixed_forms(spec: ObjectView, old_spec: ObjectView) -> Iterator[FieldError]:
    known = {dig(patch, "manager") for patch in list_of(old_spec, _PATCHES)}
    mixed = any(
        not is_converted(patch) and patch.get("manager") not in known
        for patch in list_of(spec, _PATCHES)
    )
    for key in OLD_FIELDS:
        if mixed and spec.get(key):
            detail = "cannot be used together with spec.runtimePatches; move it there"
            yield FieldError(Reason.FORBIDDEN, f"spec.{key}", None, detail)
    if all(spec.get(key) for key in _LISTS):
        detail = f"cannot be used together with spec.{TEMPLATE_OVERRIDES}; move it there"
        yield FieldError(Reason.FORBIDDEN, f"spec.{SPEC_OVERRIDES}", None, detail)


def _find_missing_targets(spec: ObjectView) -> Iterator[FieldError]:
    for key in _LISTS:
        for index, override in enumerate(list_of(spec, key)):
            if not target_names(override):
                path = f"spec.{key}[{index}].targetJobs"
                yield FieldError(Reason.REQUIRED, path, None, "name at least one replicated job")


def _find_overflow(spec: ObjectView) -> Iterator[FieldError]:
    patches = len(_merge_patches(spec))
    if patches > MAX_PATCHES and any(spec.get(key) for key in _LISTS):
        key = next(key for key in _LISTS if spec.get(key))
        detail = f"would become {patches} runtime patches, at most {MAX_PATCHES} are allowed"
        yield FieldError(Reason.TOO_MANY, f"spec.{key}", None, detail)


def _find_word_errors(spec: ObjectView) -> Iterator[FieldError]:
    word = dig(spec, "trainer", "numProcPerNode")
    if isinstance(word, str) and word not in PROCESS_WORDS:
        detail = "must be a whole number; of words only auto, gpu and cpu are converted"
        yield FieldError(Reason.NOT_SUPPORTED, "spec.trainer.numProcPerNode", word, detail)


def _merge_patches(spec: ObjectView) -> list[Json]:
    """Converted patches first, as they stood before any queue's, then the others as they are."""
    others = [patch for patch in list_of(spec, _PATCHES) if not is_converted(patch)]
    return [*build_patches(spec), *others]


def _convert_overrides(spec: Object) -> tuple[Object, list[str]]:
    found = [key for key in OLD_FIELDS if key in spec]
    if not found:
        return spec, []
    converted = {key: value for key, value in spec.items() if key not in OLD_FIELDS}
    filled = [key for key in found if spec[key]]
    if filled:
        converted[_PATCHES] = _merge_patches(spec)
    return converted, [
        f"spec.{key}: a field of Trainer {OLD_FIELDS[key]}; stored as spec.runtimePatches"
        for key in filled
    ]


def _convert_processes(spec: Object) -> tuple[Object, list[str]]:
    word = dig(spec, "trainer", "numProcPerNode")
    if not isinstance(word, str):
        return spec, []
    trainer = {key: value for key, value in spec["trainer"].items() if key != "numProcPerNode"}
    said = f'spec.trainer.numProcPerNode: "{word}" is a word of Trainer 2.0 and 2.1; '
    cpus = _count_cpus(trainer) if word == "cpu" else None
    if cpus is not None:
        trainer["numProcPerNode"] = cpus
        said += f"stored as {cpus}, the CPUs of spec.trainer.resourcesPerNode"
    elif word == "cpu":
        said += "left out, as spec.trainer.resourcesPerNode has no CPUs; set a number"
    else:
        said += "left out, which means the same"
    return {**spec, "trainer": trainer}, [said]


def _count_cpus(trainer: ObjectView) -> int | None:
    """CPUs of one node, rounded up, at least 1; requests go before limits."""
    for source in ("requests", "limits"):
        amount = dig(trainer, "resourcesPerNode", source, "cpu")
        if is_quantity(amount) and parse_quantity(amount) > 0:
            return max(1, to_integer_ceiling(amount))
    return None
