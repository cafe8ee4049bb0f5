"""Services, namespaces, service accounts, claims, leases, priority classes and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.wellknown import KUBERNETES_FINALIZER
from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig
from trainwright.base.times import render_time
from trainwright.core import names
from trainwright.core.admission import Verdict
from trainwright.core.builtin.metadata import find_label_errors
from trainwright.merge.quantity import is_quantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainwright.base.objects import Object, ObjectView
    from trainwright.core.admission import Request

HIGHEST_USER_PRIORITY = 1_000_000_000
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_STANDARD_CLASSES = ("system-cluster-critical", "system-node-critical")


def default_service(request: Request) -> Object:
    """A Service with type, affinity, traffic policies and ports as the API fills them in.

    Differs: no cluster address is given out, so a Service without one is headless.
    """
    spec = dict(request.new.get("spec") or {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] == "ExternalName":
        return {**request.new, "spec": spec, "status": _load_balancer(request.new)}
    if not spec.get("clusterIP"):
        spec["clusterIP"] = dig(request.old or {}, "spec", "clusterIP", default="None")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec.get("ports"):
        spec["ports"] = [
            {"protocol": "TCP", "targetPort": port.get("port"), **port} for port in spec["ports"]
        ]
    return {**request.new, "spec": spec, "status": _load_balancer(request.new)}


def validate_service(request: Request) -> Verdict:
    """Type, ports, selector and fixed address of a Service."""
    spec = request.new.get("spec") or {}
    errors = [
        *_find_service_errors(spec),
        *find_label_errors(spec.get("selector"), "spec.selector"),
    ]
    old = dig(request.old or {}, "spec", "clusterIP")
    if old and spec.get("type") != "ExternalName" and spec.get("clusterIP") != old:
        detail = "may not change once set"
        errors.append(
            FieldError(Reason.INVALID, "spec.clusterIPs[0]", spec.get("clusterIP"), detail)
        )
    return Verdict(errors=errors)


def _load_balancer(service: ObjectView) -> Object:
    return {"loadBalancer": {}, **(service.get("status") or {})}


def _find_service_errors(spec: ObjectView) -> Iterator[FieldError]:
    kind = spec.get("type", "ClusterIP")
    if kind not in _SERVICE_TYPES:
        yield FieldError(Reason.NOT_SUPPORTED, "spec.type", kind, _choices(_SERVICE_TYPES))
    if kind == "ExternalName" and not spec.get("externalName"):
        yield FieldError(Reason.REQUIRED, "spec.externalName")
    is_headless = spec.get("clusterIP") == "None" and kind == "ClusterIP"
    ports = spec.get("ports") or ()
    if not ports and not is_headless and kind != "ExternalName":
        yield FieldError(Reason.REQUIRED, "spec.ports")
    seen = set()
    for index, port in enumerate(ports):
        place = f"spec.ports[{index}]"
        number, name = port.get("port"), port.get("name")
        if not isinstance(number, int) or not 1 <= number <= 65535:
            detail = "must be between 1 and 65535, inclusive"
            yield FieldError(Reason.INVALID, f"{place}.port", number, detail)
        if port.get("protocol", "TCP") not in _PROTOCOLS:
            detail = _choices(_PROTOCOLS)
            yield FieldError(Reason.NOT_SUPPORTED, f"{place}.protocol", port["protocol"], detail)
        if len(ports) > 1 and not name:
            yield FieldError(Reason.REQUIRED, f"{place}.name")
        fault = names.find_label_fault(name) if name else None
        if fault:
            yield FieldError(Reason.INVALID, f"{place}.name", name, fault)
        if name and name in seen:
            yield FieldError(Reason.DUPLICATE, f"{place}.name", name)
        seen.add(name)


def default_namespace(request: Request) -> Object:
    """A Namespace with its finalizer, name label and phase."""
    new = dict(request.new)
    metadata = dict(new.get("metadata") or {})
    if metadata.get("name"):
        labels = metadata.get("labels") or {}
        metadata["labels"] = {**labels, "kubernetes.io/metadata.name": metadata["name"]}
    new["metadata"] = metadata
    if request.old is None:
        new["spec"] = {**(new.get("spec") or {}), "finalizers": [KUBERNETES_FINALIZER]}
        new["status"] = {**(new.get("status") or {}), "phase": "Active"}
    return new


def default_claim(request: Request) -> Object:
    """A PersistentVolumeClaim with volume mode and phase."""
    spec = {"volumeMode": "Filesystem", **(request.new.get("spec") or {})}
    status = {"phase": "Pending", **(request.new.get("status") or {})}
    return {**request.new, "spec": spec, "status": status}


def validate_claim(request: Request) -> Verdict:
    """Access modes, size and immutability of a PersistentVolumeClaim."""
    if request.subresource:
        return Verdict()
    spec = request.new.get("spec") or {}
    return Verdict(
        errors=[*_find_claim_errors(spec), *_find_claim_change_errors(spec, request.old)]
    )


def _find_claim_errors(spec: ObjectView) -> Iterator[FieldError]:
    modes = spec.get("accessModes") or ()
    if not modes:
        yield FieldError(Reason.REQUIRED, "spec.accessModes", detail="at least 1 access mode")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            detail = _choices(_ACCESS_MODES)
            yield FieldError(Reason.NOT_SUPPORTED, "spec.accessModes", mode, detail)
    size = dig(spec, "resources", "requests", "storage")
    place = "spec.resources[storage]"
    if size is None:
        yield FieldError(Reason.REQUIRED, place)
    elif not is_quantity(size) or parse_quantity(size) <= 0:
        yield FieldError(Reason.INVALID, place, size, "must be a quantity greater than zero")


def _find_claim_change_errors(spec: ObjectView, old: ObjectView | None) -> Iterator[FieldError]:
    if old is None:
        return
    was = dict(old.get("spec") or {})
    now = dict(spec)
    free = ["resources", "volumeAttributesClassName"]
    if not was.get("volumeName"):
        free.append("volumeName")
    for field in free:
        was.pop(field, None)
        now.pop(field, None)
    if was != now:
        detail = "spec is immutable after creation except resources.requests for bound claims"
        yield FieldError(Reason.FORBIDDEN, "spec", detail=detail)
    before = dig(old, "spec", "resources", "requests", "storage")
    after = dig(spec, "resources", "requests", "storage")
    if (
        is_quantity(before)
        and is_quantity(after)
        and parse_quantity(after) < parse_quantity(before)
    ):
        detail = "field can not be less than previous value"
        place = "spec.resources.requests.storage"
        yield FieldError(Reason.FORBIDDEN, place, detail=detail)


def default_priority_class(request: Request) -> Object:
    """A PriorityClass with its preemption policy."""
    return {"preemptionPolicy": "PreemptLowerPriority", **request.new}


def validate_priority_class(request: Request) -> Verdict:
    """Value and immutability of a PriorityClass."""
    new, name = request.new, str(dig(request.new, "metadata", "name", default=""))
    errors = []
    value = new.get("value") or 0
    if name.startswith("system-") and name not in _STANDARD_CLASSES:
        detail = "priority class names with 'system-' prefix are reserved for system use only"
        errors.append(FieldError(Reason.FORBIDDEN, "metadata.name", detail=detail))
    if value > HIGHEST_USER_PRIORITY and name not in _STANDARD_CLASSES:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(FieldError(Reason.FORBIDDEN, "value", detail=detail))
    if request.old is not None:
        errors += [
            FieldError(Reason.INVALID, field, new.get(field), "field is immutable")
            for field in ("value", "preemptionPolicy")
            if new.get(field) != request.old.get(field)
        ]
    return Verdict(errors=errors)


def validate_lease(request: Request) -> Verdict:
    """Durations and counts of a Lease."""
    spec = request.new.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    errors = []
    if duration is not None and duration <= 0:
        detail = "must be greater than 0"
        errors.append(FieldError(Reason.INVALID, "spec.leaseDurationSeconds", duration, detail))
    if transitions is not None and transitions < 0:
        detail = "must be greater than or equal to 0"
        errors.append(FieldError(Reason.INVALID, "spec.leaseTransitions", transitions, detail))
    return Verdict(errors=errors)


def default_event(request: Request) -> Object:
    """A core Event with the times and count that readers expect."""
    now = render_time(request.now)
    new = dict(request.new)
    if not new.get("eventTime"):
        new["firstTimestamp"] = new.get("firstTimestamp") or now
        new["lastTimestamp"] = new.get("lastTimestamp") or now
        new["count"] = new.get("count") or 1
    new.setdefault("type", "Normal")
    return new


def validate_event(request: Request) -> Verdict:
    """The namespace of an Event, which must be its object's."""
    namespace = dig(request.new, "metadata", "namespace", default="default")
    involved = dig(request.new, "involvedObject", "namespace", default="")
    if involved and involved != namespace:
        detail = "does not match event.namespace"
        error = FieldError(Reason.INVALID, "involvedObject.namespace", involved, detail)
        return Verdict(errors=[error])
    return Verdict()


def _choices(allowed: Sequence[str]) -> str:
    return "supported values: " + ", ".join(f'"{choice}"' for choice in allowed)
