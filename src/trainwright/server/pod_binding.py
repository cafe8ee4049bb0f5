"""What POST pods/binding does to a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.conditions import POD_SCHEDULED
from trainwright.api.kinds import POD
from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig, is_deleting, name_of
from trainwright.server import refusals

if TYPE_CHECKING:
    from trainwright.base.objects import Object


def bind_to_node(pod: Object, binding: Object, now: str) -> Object:
    """The pod on its node, with the condition and the binding's annotations.

    Raises:
        Invalid: the binding names no node. Conflict: the pod has one, or is being deleted.
    """
    name, target = name_of(pod), dig(binding, "target", "name", default="")
    bound = dig(pod, "spec", "nodeName")
    if not target:
        error = FieldError(Reason.REQUIRED, "target.name")
        raise refusals.invalid(POD, name, [error])
    if bound:
        raise refusals.conflict(POD, name, f'pod {name} is already assigned to node "{bound}"')
    if is_deleting(pod):
        raise refusals.conflict(POD, name, f"pod {name} is being deleted")
    condition = {"type": POD_SCHEDULED, "status": "True", "lastTransitionTime": now}
    status = dict(pod.get("status") or {})
    others = [c for c in status.get("conditions") or () if c.get("type") != POD_SCHEDULED]
    status["conditions"] = [*others, condition]
    annotations = dig(binding, "metadata", "annotations", default={})
    metadata = pod["metadata"]
    if annotations:
        metadata = {
            **metadata,
            "annotations": {**(metadata.get("annotations") or {}), **annotations},
        }
    spec = {**pod["spec"], "nodeName": target}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}
