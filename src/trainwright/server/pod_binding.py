"""What POST pods/binding does to a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.objects import dig

if TYPE_CHECKING:
    from trainwright.base.objects import Object


def bind_to_node(pod: Object, node_name: str, binding: Object, now: str) -> Object:
    """The pod on its node, with the condition and the binding's annotations."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
    status = dict(pod.get("status") or {})
    others = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    status["conditions"] = [*others, condition]
    annotations = dig(binding, "metadata", "annotations", default={})
    metadata = pod["metadata"]
    if annotations:
        metadata = {
            **metadata,
            "annotations": {**(metadata.get("annotations") or {}), **annotations},
        }
    spec = {**pod["spec"], "nodeName": node_name}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}
