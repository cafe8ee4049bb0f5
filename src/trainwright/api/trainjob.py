"""Typed views of TrainJob, TrainingRuntime and ClusterTrainingRuntime that lose nothing.

A view reads the fields that decisions need and keeps the object it was made from, so fields that
nobody here knows come back out of `to_object()` exactly as they went in. Views are never edited.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import msgspec

from trainwright.api import wellknown
from trainwright.api.kinds import (
    CLUSTER_TRAINING_RUNTIME,
    TRAINING_RUNTIME,
    TRAINJOB,
    Kind,
)
from trainwright.base.errors import FieldError, InvalidObject, Reason
from trainwright.base.objects import Object, name_of, namespace_of, uid_of


class RuntimeRef(msgspec.Struct, frozen=True, rename="camel"):
    """Which runtime a TrainJob is made from."""

    name: str = ""
    api_group: str = TRAINJOB.group
    kind: str = CLUSTER_TRAINING_RUNTIME.kind

    @property
    def key(self) -> str:
        """`Kind.group`, as messages about unknown runtimes name it."""
        return f"{self.kind}.{self.api_group}" if self.kind or self.api_group else ""


class Resources(msgspec.Struct, frozen=True):
    """Quantities as the wire has them (texts or numbers), by resource name."""

    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None
    claims: list[Object] | None = None


class Trainer(msgspec.Struct, frozen=True, rename="camel"):
    """`spec.trainer`. None means: not said, the runtime decides."""

    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[Object] | None = None
    num_nodes: int | None = None
    resources_per_node: Resources | None = None
    num_proc_per_node: int | None = None


class InitializerStep(msgspec.Struct, frozen=True, rename="camel"):
    """`spec.initializer.dataset` or `.model`."""

    storage_uri: str | None = None
    env: list[Object] | None = None
    secret_ref: Object | None = None


class Initializer(msgspec.Struct, frozen=True):
    """`spec.initializer`."""

    dataset: InitializerStep | None = None
    model: InitializerStep | None = None


class RuntimePatch(msgspec.Struct, frozen=True, rename="camel"):
    """One manager's entry of `spec.runtimePatches`."""

    manager: str = ""
    time: str | None = None
    training_runtime_spec: Object | None = None


class TrainJobSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`spec` of a TrainJob, with the schema's defaults."""

    runtime_ref: RuntimeRef | None = None
    initializer: Initializer | None = None
    trainer: Trainer | None = None
    runtime_patches: list[RuntimePatch] | None = None
    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    managed_by: str | None = None


class RuntimeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`spec` of a runtime; the policies stay JSON, since each belongs to its plugin."""

    ml_policy: Object | None = None
    pod_group_policy: Object | None = None
    template: Object | None = None


_Spec = TypeVar("_Spec", TrainJobSpec, RuntimeSpec)


class TrainJob:
    """A TrainJob as decisions read it."""

    __slots__ = ("obj", "spec")

    def __init__(self, obj: Object, spec: TrainJobSpec) -> None:
        self.obj = obj
        """The object that was read. Shared: never edit it."""
        self.spec = spec

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return name_of(self.obj)

    @property
    def namespace(self) -> str:
        """`metadata.namespace`."""
        return namespace_of(self.obj)

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return uid_of(self.obj)

    @property
    def runtime_ref(self) -> RuntimeRef:
        """`spec.runtimeRef`; empty fields when the TrainJob has no spec."""
        return self.spec.runtime_ref or RuntimeRef(api_group="", kind="")

    @property
    def is_suspended(self) -> bool:
        """Whether `spec.suspend` is true."""
        return bool(self.spec.suspend)

    @property
    def is_ours(self) -> bool:
        """Whether our controller reconciles it (`spec.managedBy`)."""
        return self.spec.managed_by in (None, "", wellknown.TRAINJOB_CONTROLLER)

    @property
    def patches(self) -> tuple[RuntimePatch, ...]:
        """`spec.runtimePatches` in list order."""
        return tuple(self.spec.runtime_patches or ())

    def to_object(self) -> Object:
        """The object this view was made from, as a copy of its own."""
        return copy.deepcopy(self.obj)


class TrainingRuntime:
    """A TrainingRuntime or ClusterTrainingRuntime as decisions read it."""

    __slots__ = ("kind", "obj", "spec")

    def __init__(self, obj: Object, kind: Kind, spec: RuntimeSpec) -> None:
        self.obj = obj
        """The object that was read. Shared: never edit it."""
        self.kind = kind
        self.spec = spec

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return name_of(self.obj)

    @property
    def ml_policy(self) -> Object | None:
        """`spec.mlPolicy`; None and an empty policy mean different things."""
        return self.spec.ml_policy

    @property
    def template_metadata(self) -> Object:
        """`spec.template.metadata`."""
        return _mapping(self.spec.template, "metadata")

    @property
    def template_spec(self) -> Object:
        """`spec.template.spec`: the JobSet spec that jobs start from."""
        return _mapping(self.spec.template, "spec")

    def to_object(self) -> Object:
        """The object this view was made from, as a copy of its own."""
        return copy.deepcopy(self.obj)


def _mapping(value: Object | None, key: str) -> Object:
    inner: Any = (value or {}).get(key)
    return inner if isinstance(inner, dict) else {}


def _parse_spec(obj: Object, wanted: type[_Spec]) -> _Spec:
    try:
        return msgspec.convert(obj.get("spec") or {}, wanted)
    except msgspec.ValidationError as error:
        detail, _, where = str(error).partition(" - at `$")
        path = "spec" + where.rstrip("`")
        subject = f"{obj.get('kind', 'object')} {namespace_of(obj)}/{name_of(obj)}"
        found = FieldError(Reason.TYPE_INVALID, path, None, detail)
        raise InvalidObject(subject, [found]) from error


def parse_trainjob(obj: Object) -> TrainJob:
    """Read a TrainJob.

    Raises:
        InvalidObject: when a field has another JSON type than the wire gives it.
    """
    return TrainJob(obj, _parse_spec(obj, TrainJobSpec))


def parse_runtime(obj: Object) -> TrainingRuntime:
    """Read a TrainingRuntime or ClusterTrainingRuntime.

    Raises:
        InvalidObject: when it is another kind, or a field has another JSON type.
    """
    kinds = {kind.kind: kind for kind in (TRAINING_RUNTIME, CLUSTER_TRAINING_RUNTIME)}
    kind = kinds.get(str(obj.get("kind")))
    if kind is None or obj.get("apiVersion") != kind.api_version:
        seen = f"{obj.get('apiVersion')} {obj.get('kind')}"
        wanted = " or ".join(f"{k.api_version} {k.kind}" for k in kinds.values())
        found = FieldError(Reason.INVALID, "kind", seen, f"must be {wanted}")
        raise InvalidObject(f"runtime {name_of(obj)}", [found])
    return TrainingRuntime(obj, kind, _parse_spec(obj, RuntimeSpec))
