"""Pod overrides of Trainer 2.0 and 2.1 as runtime patches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainwright.base.objects import dig

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainwright.base.objects import Json, Object, ObjectView

CONVERTED_MANAGER = "trainwright.dev/converted"
"""Manager of the first patch made from old fields; further ones have `-2`, `-3`, … behind it."""
MAX_PATCHES = 16
"""Most entries that `spec.runtimePatches` may have."""

SPEC_OVERRIDES = "podSpecOverrides"
TEMPLATE_OVERRIDES = "podTemplateOverrides"


@dataclass(slots=True)
class _Entry:
    """One runtime patch in the making: a template's metadata and one patch for each job."""

    metadata: Object = field(default_factory=dict)
    pod_templates: dict[str, Object] = field(default_factory=dict)

    def build(self, manager: str) -> Object:
        template: Object = {"metadata": self.metadata} if self.metadata else {}
        if self.pod_templates:
            jobs = [
                {"name": name, "template": {"spec": {"template": pod_template}}}
                for name, pod_template in self.pod_templates.items()
            ]
            template["spec"] = {"replicatedJobs": jobs}
        return {"manager": manager, "trainingRuntimeSpec": {"template": template}}


def is_converted(patch: ObjectView) -> bool:
    """Whether a runtime patch was made here from old fields."""
    manager = str(patch.get("manager", ""))
    return manager == CONVERTED_MANAGER or manager.startswith(f"{CONVERTED_MANAGER}-")


def build_patches(spec: ObjectView) -> list[Object]:
    """The runtime patches that do what the old fields of a TrainJob's spec did.

    An override of a job comes into the entry behind that of the job's override before it, so the
    later one still wins; entries are as few as that allows.
    """
    entries: list[_Entry] = []
    metadata = {key: spec[key] for key in ("labels", "annotations") if spec.get(key)}
    if metadata:
        entries.append(_Entry(metadata=metadata))
    seen: dict[str, int] = {}
    for names, pod_template in _list_overrides(spec):
        if not pod_template:
            continue
        for name in names:
            depth = seen[name] = seen.get(name, 0) + 1
            while len(entries) < depth:
                entries.append(_Entry())
            entries[depth - 1].pod_templates[name] = pod_template
    return [entry.build(_manager(index)) for index, entry in enumerate(entries, start=1)]


def target_names(override: Json) -> tuple[str, ...]:
    """The replicated jobs that an override names, each once."""
    targets = dig(override, "targetJobs", default=())
    names = (dig(target, "name") for target in targets)
    return tuple(dict.fromkeys(str(name) for name in names if name))


def list_of(spec: ObjectView, key: str) -> Sequence[Json]:
    """The overrides under `key`; none when the field is absent or of another shape."""
    value = spec.get(key)
    return value if isinstance(value, list) else ()


def _list_overrides(spec: ObjectView) -> Iterator[tuple[tuple[str, ...], Object]]:
    for override in list_of(spec, SPEC_OVERRIDES):
        pod_spec = {key: value for key, value in override.items() if key != "targetJobs"}
        yield target_names(override), {"spec": pod_spec} if pod_spec else {}
    for override in list_of(spec, TEMPLATE_OVERRIDES):
        yield (
            target_names(override),
            {key: value for key, value in override.items() if key != "targetJobs" and value},
        )


def _manager(index: int) -> str:
    return CONVERTED_MANAGER if index == 1 else f"{CONVERTED_MANAGER}-{index}"
