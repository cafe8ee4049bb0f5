"""What is refused of pods and pod templates, and which parts of a pod an update may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig
from trainwright.core import names
from trainwright.core.pods.containers import find_container_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainwright.base.objects import Object, ObjectView

_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_VOLUME_SOURCES = frozenset({
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi",
    "downwardAPI", "emptyDir", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk",
    "gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs", "persistentVolumeClaim",
    "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret",
    "storageos", "vsphereVolume",
})  # fmt: skip
_MAY_CHANGE = (
    "image of spec.containers and spec.initContainers, spec.activeDeadlineSeconds, "
    "additions to spec.tolerations and spec.terminationGracePeriodSeconds when it was negative"
)


def find_pod_errors(new: ObjectView, old: ObjectView | None) -> list[FieldError]:
    """Everything wrong with a pod that is created (`old` is None) or updated.

    Source: Kubernetes pod validation; contract for updates: `_MAY_CHANGE`, removal of scheduling
    gates, and nodeSelector and affinity while gated.
    """
    spec = new.get("spec") or {}
    if old is None:
        return find_pod_spec_errors(spec, "spec")
    return list(_find_update_errors(spec, old.get("spec") or {}))


def find_pod_spec_errors(
    spec: ObjectView, path: str = "spec", *, restart_policies: Sequence[str] = _RESTART_POLICIES
) -> list[FieldError]:
    """Everything wrong with a pod spec at `path`; Jobs pass the restart policies they allow."""
    return [
        *_find_spec_field_errors(spec, path, restart_policies),
        *_find_volume_errors(spec, path),
        *_find_containers_errors(spec, path),
    ]


def _find_spec_field_errors(
    spec: ObjectView, path: str, restart_policies: Sequence[str]
) -> Iterator[FieldError]:
    for field, allowed in (("restartPolicy", restart_policies), ("dnsPolicy", _DNS_POLICIES)):
        value = spec.get(field)
        if value is not None and value not in allowed:
            yield FieldError(Reason.NOT_SUPPORTED, f"{path}.{field}", value, _choices(allowed))
    for field in ("hostname", "subdomain"):
        value = spec.get(field)
        fault = names.find_label_fault(value) if value else None
        if fault:
            yield FieldError(Reason.INVALID, f"{path}.{field}", value, fault)
    for field in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        value = spec.get(field)
        fault = names.find_subdomain_fault(value) if value else None
        if fault:
            yield FieldError(Reason.INVALID, f"{path}.{field}", value, fault)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        detail = "must be between 1 and 2147483647, inclusive"
        yield FieldError(Reason.INVALID, f"{path}.activeDeadlineSeconds", deadline, detail)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        detail = "must be greater than or equal to 0"
        yield FieldError(Reason.INVALID, f"{path}.terminationGracePeriodSeconds", grace, detail)
    for key, value in (spec.get("nodeSelector") or {}).items():
        fault = names.find_qualified_name_fault(key) or names.find_label_value_fault(value)
        if fault:
            yield FieldError(Reason.INVALID, f"{path}.nodeSelector", value, fault)
    yield from _find_gate_errors(spec, path)
    yield from _find_toleration_errors(spec, path)


def _find_gate_errors(spec: ObjectView, path: str) -> Iterator[FieldError]:
    seen = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name, place = str(gate.get("name", "")), f"{path}.schedulingGates[{index}]"
        fault = names.find_qualified_name_fault(name)
        if fault:
            yield FieldError(Reason.INVALID, f"{place}.name", name, fault)
        if name in seen:
            yield FieldError(Reason.DUPLICATE, place, name)
        seen.add(name)


def _find_toleration_errors(spec: ObjectView, path: str) -> Iterator[FieldError]:
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        place = f"{path}.tolerations[{index}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in ("Equal", "Exists"):
            detail = _choices(("Equal", "Exists"))
            yield FieldError(Reason.NOT_SUPPORTED, f"{place}.operator", operator, detail)
        elif operator == "Exists" and toleration.get("value"):
            detail = 'value must be empty when `operator` is "Exists"'
            yield FieldError(Reason.INVALID, f"{place}.operator", toleration["value"], detail)
        elif not toleration.get("key") and operator != "Exists":
            detail = 'operator must be "Exists" when `key` is empty'
            yield FieldError(Reason.INVALID, f"{place}.operator", operator, detail)
        effect = toleration.get("effect")
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        if effect and effect not in effects:
            yield FieldError(Reason.NOT_SUPPORTED, f"{place}.effect", effect, _choices(effects))


def _find_volume_errors(spec: ObjectView, path: str) -> Iterator[FieldError]:
    seen = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        name, place = volume.get("name"), f"{path}.volumes[{index}]"
        if not name:
            yield FieldError(Reason.REQUIRED, f"{place}.name")
            continue
        fault = names.find_label_fault(name)
        if fault:
            yield FieldError(Reason.INVALID, f"{place}.name", name, fault)
        if name in seen:
            yield FieldError(Reason.DUPLICATE, f"{place}.name", name)
        seen.add(name)
        sources = [key for key in volume if key in _VOLUME_SOURCES]
        if len(sources) > 1:
            detail = f"a volume has one source, here are {', '.join(sources)}"
            yield FieldError(Reason.FORBIDDEN, f"{place}.{sources[1]}", detail=detail)
        yield from _find_source_errors(volume, place)


def _find_source_errors(volume: ObjectView, place: str) -> Iterator[FieldError]:
    for source, field in (
        ("persistentVolumeClaim", "claimName"),
        ("secret", "secretName"),
        ("configMap", "name"),
        ("hostPath", "path"),
    ):
        if isinstance(volume.get(source), dict) and not volume[source].get(field):
            yield FieldError(Reason.REQUIRED, f"{place}.{source}.{field}")
    yield from _find_item_errors(volume, place)
    for index, source in enumerate(dig(volume, "projected", "sources", default=())):
        where = f"{place}.projected.sources[{index}]"
        yield from _find_item_errors(source, where)
        if isinstance(token := source.get("serviceAccountToken"), dict):
            yield from _find_path_errors(token, f"{where}.serviceAccountToken")


def _find_item_errors(sources: ObjectView, place: str) -> Iterator[FieldError]:
    for source in ("secret", "configMap", "downwardAPI"):
        for index, item in enumerate(dig(sources, source, "items", default=())):
            yield from _find_path_errors(item, f"{place}.{source}.items[{index}]")


def _find_path_errors(item: ObjectView, place: str) -> Iterator[FieldError]:
    target = item.get("path")
    if not target:
        yield FieldError(Reason.REQUIRED, f"{place}.path")
    elif target.startswith("/"):
        yield FieldError(Reason.INVALID, f"{place}.path", target, "must be a relative path")
    elif ".." in target.split("/"):
        yield FieldError(Reason.INVALID, f"{place}.path", target, "must not contain '..'")


def _find_containers_errors(spec: ObjectView, path: str) -> Iterator[FieldError]:
    if not spec.get("containers"):
        yield FieldError(Reason.REQUIRED, f"{path}.containers")
    volumes = frozenset(v.get("name") for v in spec.get("volumes") or ())
    claims = frozenset(c.get("name") for c in spec.get("resourceClaims") or ())
    seen: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            place = f"{path}.{field}[{index}]"
            yield from find_container_errors(container, place, volumes=volumes, claims=claims)
            name = container.get("name")
            if name in seen:
                yield FieldError(Reason.DUPLICATE, f"{place}.name", name)
            seen.add(name)
            if field == "initContainers":
                yield from _find_init_errors(container, place)


def _find_init_errors(container: ObjectView, place: str) -> Iterator[FieldError]:
    policy = container.get("restartPolicy")
    if policy == "Always":
        return
    for field in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"):
        if container.get(field) is not None:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield FieldError(Reason.FORBIDDEN, f"{place}.{field}", detail=detail)


def _find_update_errors(new: ObjectView, old: ObjectView) -> Iterator[FieldError]:
    yield from _find_deadline_change_errors(new, old)
    yield from _find_toleration_change_errors(new, old)
    old_gates = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    for index, gate in enumerate(new.get("schedulingGates") or ()):
        if gate.get("name") not in old_gates:
            detail = "scheduling gates may only be removed after the pod was created"
            place = f"spec.schedulingGates[{index}].name"
            yield FieldError(Reason.FORBIDDEN, place, detail=detail)
    expected = _with_allowed_changes(new, old, gated=bool(old_gates))
    if _normal(new) != _normal(expected):
        detail = f"pod updates may not change fields other than {_MAY_CHANGE}"
        changed = _changed_fields(_normal(new), _normal(expected))
        yield FieldError(Reason.FORBIDDEN, "spec", detail=f"{detail}; changed here: {changed}")


def _find_deadline_change_errors(new: ObjectView, old: ObjectView) -> Iterator[FieldError]:
    was, wanted = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if wanted is not None and not 1 <= wanted < 2**31:
        detail = "must be between 1 and 2147483647, inclusive"
        yield FieldError(Reason.INVALID, "spec.activeDeadlineSeconds", wanted, detail)
    elif was is not None and wanted is None:
        detail = "must not update from a positive integer to nil value"
        yield FieldError(Reason.INVALID, "spec.activeDeadlineSeconds", wanted, detail)
    elif was is not None and wanted is not None and wanted > was:
        detail = "must be less than or equal to previous value"
        yield FieldError(Reason.INVALID, "spec.activeDeadlineSeconds", wanted, detail)


def _find_toleration_change_errors(new: ObjectView, old: ObjectView) -> Iterator[FieldError]:
    kept = [_without(t, "tolerationSeconds") for t in new.get("tolerations") or ()]
    for toleration in old.get("tolerations") or ():
        if _without(toleration, "tolerationSeconds") not in kept:
            detail = "existing toleration can not be modified except its tolerationSeconds"
            yield FieldError(Reason.FORBIDDEN, "spec.tolerations", detail=detail)
            return


def _with_allowed_changes(new: ObjectView, old: ObjectView, *, gated: bool) -> Object:
    """The old spec with every change of the new one that is allowed."""
    expected = dict(old)
    for field in ("containers", "initContainers"):
        was, wanted = old.get(field) or [], new.get(field) or []
        if len(was) == len(wanted):
            expected[field] = [
                {**before, "image": after.get("image")} if after.get("image") else before
                for before, after in zip(was, wanted, strict=True)
            ]
    allowed = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    if (old.get("terminationGracePeriodSeconds") or 0) < 0:
        allowed.append("terminationGracePeriodSeconds")
    if gated and _adds_only(old.get("nodeSelector"), new.get("nodeSelector")):
        allowed.append("nodeSelector")
    if gated:
        allowed.append("affinity")
    for field in allowed:
        expected[field] = new.get(field)
    return expected


def _adds_only(old: ObjectView | None, new: ObjectView | None) -> bool:
    new = new or {}
    return all(new.get(key) == value for key, value in (old or {}).items())


def _changed_fields(new: ObjectView, old: ObjectView) -> str:
    return ", ".join(sorted(key for key in {*new, *old} if new.get(key) != old.get(key)))


def _normal(spec: ObjectView) -> Object:
    """The spec without empty values, so that absent and empty are the same."""
    return {key: value for key, value in spec.items() if value not in (None, [], {}, "")}


def _without(value: ObjectView, field: str) -> Object:
    return {key: item for key, item in value.items() if key != field and item not in (None, "")}


def _choices(allowed: Sequence[str]) -> str:
    return "supported values: " + ", ".join(f'"{choice}"' for choice in allowed)
