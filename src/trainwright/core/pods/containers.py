"""What is refused of one container: names, ports, environment, mounts, resources, probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import FieldError, Reason
from trainwright.core import names
from trainwright.merge.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Set
    from fractions import Fraction

    from trainwright.base.objects import Json, ObjectView

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_FIELD_REFS = frozenset({
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
})  # fmt: skip
_MAP_REFS = ("metadata.labels['", "metadata.annotations['")
_ENV_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_PROBE_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")


def find_container_errors(
    container: ObjectView, path: str, *, volumes: Set[str], claims: Set[str] = frozenset()
) -> Iterator[FieldError]:
    """Everything wrong with one container; `volumes` are the names that its mounts may use."""
    name = container.get("name")
    if not name:
        yield FieldError(Reason.REQUIRED, f"{path}.name")
    else:
        fault = names.find_label_fault(name)
        if fault:
            yield FieldError(Reason.INVALID, f"{path}.name", name, fault)
    image = container.get("image")
    if not image:
        yield FieldError(Reason.REQUIRED, f"{path}.image")
    elif image != image.strip():
        detail = "must not have leading or trailing whitespace"
        yield FieldError(Reason.INVALID, f"{path}.image", image, detail)
    policy = container.get("imagePullPolicy")
    if policy is not None and policy not in _PULL_POLICIES:
        detail = _choices(_PULL_POLICIES)
        yield FieldError(Reason.NOT_SUPPORTED, f"{path}.imagePullPolicy", policy, detail)
    yield from _find_port_errors(container, path)
    yield from _find_env_errors(container, path)
    yield from _find_mount_errors(container, path, volumes)
    yield from find_resource_errors(container.get("resources") or {}, f"{path}.resources", claims)
    yield from _find_probe_errors(container, path)


def _find_port_errors(container: ObjectView, path: str) -> Iterator[FieldError]:
    seen = set()
    for index, port in enumerate(container.get("ports") or ()):
        place = f"{path}.ports[{index}]"
        name = port.get("name")
        fault = names.find_port_name_fault(name) if name else None
        if fault:
            yield FieldError(Reason.INVALID, f"{place}.name", name, fault)
        if name and name in seen:
            yield FieldError(Reason.DUPLICATE, f"{place}.name", name)
        seen.add(name)
        for field in ("containerPort", "hostPort"):
            number = port.get(field)
            if field == "containerPort" and not number:
                yield FieldError(Reason.REQUIRED, f"{place}.{field}")
            elif number and not 1 <= number <= 65535:
                detail = "must be between 1 and 65535, inclusive"
                yield FieldError(Reason.INVALID, f"{place}.{field}", number, detail)
        protocol = port.get("protocol")
        if protocol is not None and protocol not in _PROTOCOLS:
            detail = _choices(_PROTOCOLS)
            yield FieldError(Reason.NOT_SUPPORTED, f"{place}.protocol", protocol, detail)


def _find_env_errors(container: ObjectView, path: str) -> Iterator[FieldError]:
    for index, variable in enumerate(container.get("env") or ()):
        place = f"{path}.env[{index}]"
        name = variable.get("name")
        if not name:
            yield FieldError(Reason.REQUIRED, f"{place}.name")
        else:
            fault = names.find_env_name_fault(name)
            if fault:
                yield FieldError(Reason.INVALID, f"{place}.name", name, fault)
        source = variable.get("valueFrom")
        if source is not None:
            yield from _find_env_source_errors(variable, source, f"{place}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        place = f"{path}.envFrom[{index}]"
        given = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        if len(given) != 1:
            detail = "must name one of `configMapRef` and `secretRef`"
            yield FieldError(Reason.INVALID, place, dict(source), detail)
        elif not source[given[0]].get("name"):
            yield FieldError(Reason.REQUIRED, f"{place}.{given[0]}.name")
        prefix = source.get("prefix")
        fault = names.find_env_name_fault(prefix) if prefix else None
        if fault:
            yield FieldError(Reason.INVALID, f"{place}.prefix", prefix, fault)


def _find_env_source_errors(
    variable: ObjectView, source: ObjectView, place: str
) -> Iterator[FieldError]:
    given = [key for key in _ENV_SOURCES if source.get(key) is not None]
    if variable.get("value"):
        detail = "may not be set when `value` is not empty"
        yield FieldError(Reason.INVALID, place, "", detail)
    if len(given) != 1:
        detail = "must name exactly one source"
        yield FieldError(Reason.INVALID, place, dict(source), detail)
        return
    reference = source[given[0]]
    if given[0] in ("configMapKeyRef", "secretKeyRef"):
        for field in ("name", "key"):
            if not reference.get(field):
                yield FieldError(Reason.REQUIRED, f"{place}.{given[0]}.{field}")
    if given[0] == "resourceFieldRef" and not reference.get("resource"):
        yield FieldError(Reason.REQUIRED, f"{place}.resourceFieldRef.resource")
    if given[0] == "fieldRef":
        target = reference.get("fieldPath")
        if not target:
            yield FieldError(Reason.REQUIRED, f"{place}.fieldRef.fieldPath")
        elif target not in _FIELD_REFS and not target.startswith(_MAP_REFS):
            detail = _choices(tuple(sorted(_FIELD_REFS)))
            yield FieldError(Reason.NOT_SUPPORTED, f"{place}.fieldRef.fieldPath", target, detail)


def _find_mount_errors(container: ObjectView, path: str, volumes: Set[str]) -> Iterator[FieldError]:
    seen = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        place = f"{path}.volumeMounts[{index}]"
        name, target = mount.get("name"), mount.get("mountPath")
        if not name:
            yield FieldError(Reason.REQUIRED, f"{place}.name")
        elif name not in volumes:
            detail = f'no volume of the pod is named "{name}"; add it to volumes'
            yield FieldError(Reason.INVALID, f"{place}.name", name, detail)
        if not target:
            yield FieldError(Reason.REQUIRED, f"{place}.mountPath")
            continue
        if not target.startswith("/"):
            detail = "must be an absolute path"
            yield FieldError(Reason.INVALID, f"{place}.mountPath", target, detail)
        elif ".." in target.split("/"):
            detail = "must not contain '..'"
            yield FieldError(Reason.INVALID, f"{place}.mountPath", target, detail)
        if target in seen:
            detail = "must be unique"
            yield FieldError(Reason.INVALID, f"{place}.mountPath", target, detail)
        seen.add(target)
        yield from _find_sub_path_errors(mount, place)


def _find_sub_path_errors(mount: ObjectView, place: str) -> Iterator[FieldError]:
    for field in ("subPath", "subPathExpr"):
        inner = mount.get(field)
        if inner and inner.startswith("/"):
            yield FieldError(Reason.INVALID, f"{place}.{field}", inner, "must be a relative path")
        elif inner and ".." in inner.split("/"):
            yield FieldError(Reason.INVALID, f"{place}.{field}", inner, "must not contain '..'")
    if mount.get("subPath") and mount.get("subPathExpr"):
        detail = "subPathExpr and subPath are mutually exclusive"
        yield FieldError(Reason.INVALID, f"{place}.subPathExpr", mount["subPathExpr"], detail)


def find_resource_errors(
    resources: ObjectView, path: str, claims: Set[str] = frozenset()
) -> Iterator[FieldError]:
    """Everything wrong with a container's `resources`: names, amounts, requests over limits."""
    amounts: dict[str, dict[str, Fraction]] = {"limits": {}, "requests": {}}
    for side, known in amounts.items():
        for name, value in (resources.get(side) or {}).items():
            place = f"{path}.{side}[{name}]"
            fault = _find_resource_name_fault(name)
            if fault:
                yield FieldError(Reason.INVALID, place, name, fault)
            try:
                known[name] = _read_amount(value)
            except ValueError:
                yield FieldError(
                    Reason.INVALID, place, value, "must be a quantity such as 500m or 2Gi"
                )
                continue
            if known[name] < 0:
                detail = "must be greater than or equal to 0"
                yield FieldError(Reason.INVALID, place, str(value), detail)
            elif _is_whole_only(name) and known[name] != int(known[name]):
                yield FieldError(Reason.INVALID, place, str(value), "must be an integer")
    yield from _find_balance_errors(resources, amounts, path)
    for index, claim in enumerate(resources.get("claims") or ()):
        if claim.get("name") not in claims:
            place = f"{path}.claims[{index}]"
            detail = "must be one of the names in pod.spec.resourceClaims"
            yield FieldError(Reason.INVALID, place, claim.get("name"), detail)


def _find_balance_errors(
    resources: ObjectView, amounts: dict[str, dict[str, Fraction]], path: str
) -> Iterator[FieldError]:
    for name, requested in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        place = f"{path}.requests"
        value = resources["requests"][name]
        if limit is not None and requested > limit:
            detail = f"must be less than or equal to {name} limit of {resources['limits'][name]}"
            yield FieldError(Reason.INVALID, place, str(value), detail)
        elif _is_whole_only(name) and limit is not None and requested != limit:
            detail = f"must be equal to {name} limit of {resources['limits'][name]}"
            yield FieldError(Reason.INVALID, place, str(value), detail)
        elif _is_whole_only(name) and limit is None:
            detail = f"limit must be set for non overcommitable resource {name}"
            yield FieldError(Reason.REQUIRED, f"{path}.limits", detail=detail)


def _is_whole_only(name: str) -> bool:
    """Extended resources such as GPUs come in whole pieces and are never overcommitted."""
    return "/" in name and not name.startswith("kubernetes.io/")


def _find_resource_name_fault(name: str) -> str | None:
    fault = names.find_qualified_name_fault(name)
    if fault:
        return fault
    if "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
        return f"must be one of {', '.join(_STANDARD_RESOURCES)}, or have a domain as prefix"
    return None


def _read_amount(value: Json) -> Fraction:
    return parse_quantity(str(value))


def _find_probe_errors(container: ObjectView, path: str) -> Iterator[FieldError]:
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(field)
        if probe is None:
            continue
        place = f"{path}.{field}"
        given = [handler for handler in _PROBE_HANDLERS if probe.get(handler) is not None]
        if not given:
            yield FieldError(Reason.REQUIRED, place, detail="must specify a handler type")
        for extra in given[1:]:
            detail = "may not specify more than 1 handler type"
            yield FieldError(Reason.FORBIDDEN, f"{place}.{extra}", detail=detail)
        successes = probe.get("successThreshold", 1)
        if field != "readinessProbe" and successes != 1:
            yield FieldError(Reason.INVALID, f"{place}.successThreshold", successes, "must be 1")
        for number in ("timeoutSeconds", "periodSeconds", "failureThreshold"):
            value = probe.get(number)
            if value is not None and value < 1:
                detail = "must be greater than or equal to 1"
                yield FieldError(Reason.INVALID, f"{place}.{number}", value, detail)


def _choices(allowed: tuple[str, ...]) -> str:
    return "supported values: " + ", ".join(f'"{choice}"' for choice in allowed)
