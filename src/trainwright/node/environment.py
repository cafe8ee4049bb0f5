"""Environment variables, commands and downward values of a container, exactly as Kubernetes reads them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from trainwright.base.errors import TrainwrightError
from trainwright.base.objects import ObjectView, annotations_of, dig, labels_of, name_of
from trainwright.merge.quantity import parse_quantity

_REFERENCE = re.compile(r"\$(\$|\(([^)]*)\))")
_SUBSCRIPT = re.compile(r"^metadata\.(labels|annotations)\['(.+)'\]$")


class ConfigError(TrainwrightError):
    """A container cannot be made yet: something that it names is missing or wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The objects that a container's variables and volumes may refer to, by name; None: not there."""

    config_maps: Mapping[str, ObjectView | None]
    secrets: Mapping[str, ObjectView | None]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by variables that exist; `$$` is a dollar; the rest stays as it is."""

    def substitute(match: re.Match[str]) -> str:
        if match.group(1) == "$":
            return "$"
        return variables.get(match.group(2), match.group(0))

    return _REFERENCE.sub(substitute, text)


def build_environment(
    pod: ObjectView,
    container: Mapping[str, Any],
    sources: Sources,
    *,
    base: Mapping[str, str],
    allocatable: Mapping[str, str],
) -> dict[str, str]:
    """A container's own variables, `base` (service variables) below them.

    Raises:
        ConfigError: a ConfigMap, Secret or key that is not optional is missing.

    Source: contract jobset 3.8.
    """
    variables = dict(base)
    for source in container.get("envFrom") or []:
        variables |= _read_env_from(source, sources)
    for row in container.get("env") or []:
        value = (
            read_value_from(pod, container, row["valueFrom"], sources, allocatable)
            if row.get("valueFrom")
            else expand(row.get("value") or "", variables)
        )
        if value is not None:
            variables[row["name"]] = value
    return variables


def _read_env_from(source: Mapping[str, Any], sources: Sources) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    if "configMapRef" in source:
        reference = source["configMapRef"]
        obj = find_source("configmap", reference, sources.config_maps)
        data: Mapping[str, str] = dig(obj, "data", default={}) if obj else {}
    else:
        reference = source.get("secretRef") or {}
        obj = find_source("secret", reference, sources.secrets)
        data = {k: v.decode(errors="replace") for k, v in read_secret(obj or {}).items()}
    return {prefix + key: value for key, value in data.items()}


def find_source(
    noun: str, reference: Mapping[str, Any], objects: Mapping[str, ObjectView | None]
) -> ObjectView | None:
    """The object that a reference names; None when it is missing and may be.

    Raises:
        ConfigError: it is missing and may not be.
    """
    name = reference.get("name") or reference.get("secretName") or ""
    obj = objects.get(name)
    if obj is None and not reference.get("optional"):
        raise ConfigError(f'{noun} "{name}" not found')
    return obj


def read_secret(obj: ObjectView) -> dict[str, bytes]:
    """A Secret's data, decoded."""
    data: Mapping[str, str] = dig(obj, "data", default={})
    return {key: base64.b64decode(value) for key, value in data.items()}


def read_config_map(obj: ObjectView) -> dict[str, bytes]:
    """A ConfigMap's data and binaryData."""
    data: Mapping[str, str] = dig(obj, "data", default={})
    binary: Mapping[str, str] = dig(obj, "binaryData", default={})
    return {key: value.encode() for key, value in data.items()} | {
        key: base64.b64decode(value) for key, value in binary.items()
    }


def read_value_from(
    pod: ObjectView,
    container: Mapping[str, Any],
    source: Mapping[str, Any],
    sources: Sources,
    allocatable: Mapping[str, str],
) -> str | None:
    """The value of one `valueFrom`; None: optional and missing, so that the variable is left out."""
    if "fieldRef" in source:
        return read_field(pod, source["fieldRef"].get("fieldPath", ""))
    if "resourceFieldRef" in source:
        return read_resource(container, source["resourceFieldRef"], allocatable)
    if "configMapKeyRef" in source:
        reference = source["configMapKeyRef"]
        obj = find_source("configmap", reference, sources.config_maps)
        return _read_key("configmap", reference, read_config_map(obj or {}), obj)
    if "secretKeyRef" in source:
        reference = source["secretKeyRef"]
        obj = find_source("secret", reference, sources.secrets)
        return _read_key("secret", reference, read_secret(obj or {}), obj)
    raise ConfigError(f"valueFrom {sorted(source)} is not known on the laptop")


def _read_key(
    noun: str,
    reference: Mapping[str, Any],
    data: Mapping[str, bytes],
    obj: ObjectView | None,
) -> str | None:
    key = reference.get("key", "")
    if key in data:
        return data[key].decode(errors="surrogateescape")
    if reference.get("optional"):
        return None
    raise ConfigError(f"couldn't find key {key} in {noun} {name_of(obj or {})}")


def read_field(pod: ObjectView, path: str) -> str:
    """A `fieldRef` of a variable or file.

    Raises:
        ConfigError: the path is none of those that Kubernetes allows.
    """
    match = _SUBSCRIPT.match(path)
    if match:
        values = labels_of(pod) if match.group(1) == "labels" else annotations_of(pod)
        return str(values.get(match.group(2), ""))
    if path in ("metadata.labels", "metadata.annotations"):
        values = labels_of(pod) if path.endswith("labels") else annotations_of(pod)
        return "\n".join(f"{key}={json.dumps(values[key])}" for key in sorted(values))
    if path in ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
                "spec.serviceAccountName", "status.hostIP", "status.podIP"):  # fmt: skip
        head, tail = path.split(".")
        return str(dig(pod, head, tail, default=""))
    if path in ("status.hostIPs", "status.podIPs"):
        return ",".join(row["ip"] for row in dig(pod, "status", path[7:], default=[]))
    raise ConfigError(f"unsupported fieldPath: {path}")


def read_resource(
    container: Mapping[str, Any], reference: Mapping[str, Any], allocatable: Mapping[str, str]
) -> str:
    """A `resourceFieldRef`: the value over the divisor, rounded up; a missing limit is the node's."""
    group, _, resource = reference.get("resource", "").partition(".")
    if group not in ("limits", "requests"):
        raise ConfigError(f"unsupported resource: {reference.get('resource')}")
    fallback = allocatable.get(resource, "0") if group == "limits" else "0"
    try:
        value = parse_quantity(dig(container, "resources", group, resource, default=fallback))
        divisor = parse_quantity(reference.get("divisor") or "1") or 1
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return str(ceil(value / divisor))


def build_service_variables(host: str, port: int) -> dict[str, str]:
    """The variables of the service `kubernetes`, by which in-cluster clients find the API server."""
    if not host:
        return {}
    url = f"tcp://{host}:{port}"
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        "KUBERNETES_PORT": url,
        f"KUBERNETES_PORT_{port}_TCP": url,
        f"KUBERNETES_PORT_{port}_TCP_PROTO": "tcp",
        f"KUBERNETES_PORT_{port}_TCP_PORT": str(port),
        f"KUBERNETES_PORT_{port}_TCP_ADDR": host,
    }


def build_command(container: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[str, ...]:
    """`command` and `args`, expanded.

    Raises:
        ConfigError: there is no command; an image's own cannot be known without the image.
    """
    command = container.get("command") or []
    if not command:
        raise ConfigError(
            f'container "{container["name"]}" has no command: the own command of image '
            f'"{container.get("image", "")}" is unknown on the laptop, where images are not run; '
            "give command"
        )
    return tuple(
        expand(str(word), variables) for word in (*command, *(container.get("args") or []))
    )


def list_references(pod: ObjectView) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the (ConfigMaps, Secrets) that a pod's containers and volumes refer to."""
    maps: set[str] = set()
    secrets: set[str] = set()

    def visit(value: Any) -> None:
        if isinstance(value, Mapping):
            for key in ("configMapRef", "configMapKeyRef", "configMap"):
                if isinstance(value.get(key), Mapping):
                    maps.add(value[key].get("name", ""))
            for key in ("secretRef", "secretKeyRef", "secret"):
                if isinstance(value.get(key), Mapping):
                    secrets.add(value[key].get("name") or value[key].get("secretName", ""))
            for item in value.values():
                visit(item)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            for item in value:
                visit(item)

    visit(dig(pod, "spec", default={}))
    return frozenset(maps), frozenset(secrets)


Rewrite = Callable[[str], str]
"""From text as the cluster would have it to text as this machine needs it."""
