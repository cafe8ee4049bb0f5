"""Runtimes that an older Trainer held back with a finalizer of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.wellknown import RESOURCE_IN_USE_FINALIZER
from trainwright.base.objects import dig, name_of, namespace_of, resource_version_of
from trainwright.core.plan import Patch, Plan

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object


def plan_runtime_release(kind: Kind, runtime: Object) -> Plan:
    """Take the finalizer off that Trainer 2.0 to 2.2 put on runtimes in use.

    Nobody else would, and the runtime (with its namespace) could never go. Source: Trainer 2.3,
    runtime controllers.
    """
    finalizers: list[str] = dig(runtime, "metadata", "finalizers", default=[])
    if RESOURCE_IN_USE_FINALIZER not in finalizers:
        return Plan()
    kept = [finalizer for finalizer in finalizers if finalizer != RESOURCE_IN_USE_FINALIZER]
    release = Patch(
        kind=kind,
        namespace=namespace_of(runtime),
        name=name_of(runtime),
        patch={"metadata": {"finalizers": kept}},
        resource_version=resource_version_of(runtime),
    )
    return Plan(actions=(release,))
