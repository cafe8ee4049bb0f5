"""Protobuf bodies of the kinds that kubectl creates through typed clients, into plain JSON objects.

`kubectl create namespace`, `create job` or `auth can-i` send `application/vnd.kubernetes.protobuf` and
do not fall back. What these requests can hold is decoded from the tables below; anything else is
refused with the advice to send JSON, rather than dropped.

Source: Kubernetes, generated.proto of each API group: numbers and names of the fields.
"""

from __future__ import annotations

import base64
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.base.errors import BadRequest, UnsupportedMediaType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainwright.base.objects import Object

MAGIC = b"k8s\x00"
MAX_DEPTH = 64

# Each field is "name type". `int` and `bool` keep a zero (pointers in Go); `count` and `flag` drop
# it (values in Go, always sent); `-` is read over. `[x]` is a list of x, `{x}` a map from text to x.
_MESSAGES: Mapping[str, Mapping[int, str]] = {
    "ObjectMeta": {
        1: "name string", 2: "generateName string", 3: "namespace string", 4: "selfLink -",
        5: "uid string", 6: "resourceVersion string", 7: "generation -", 8: "creationTimestamp -",
        9: "deletionTimestamp -", 10: "deletionGracePeriodSeconds -", 11: "labels {string}",
        12: "annotations {string}", 13: "ownerReferences [OwnerReference]",
        14: "finalizers [string]", 17: "managedFields -",
    },
    "OwnerReference": {
        1: "kind string", 3: "name string", 4: "uid string", 5: "apiVersion string",
        6: "controller bool", 7: "blockOwnerDeletion bool",
    },
    "LocalObjectReference": {1: "name string"},
    "ObjectReference": {
        1: "kind string", 2: "namespace string", 3: "name string", 4: "uid string",
        5: "apiVersion string", 6: "resourceVersion string", 7: "fieldPath string",
    },
    "LabelSelector": {1: "matchLabels {string}", 2: "matchExpressions [Requirement]"},
    "Requirement": {1: "key string", 2: "operator string", 3: "values [string]"},
    "DeleteOptions": {
        1: "gracePeriodSeconds int", 2: "preconditions Preconditions", 3: "orphanDependents bool",
        4: "propagationPolicy string", 5: "dryRun [string]",
    },
    "Preconditions": {1: "uid string", 2: "resourceVersion string"},
    "Namespace": {1: "metadata ObjectMeta", 2: "spec NamespaceSpec", 3: "status -"},
    "NamespaceSpec": {1: "finalizers [string]"},
    "ServiceAccount": {
        1: "metadata ObjectMeta", 2: "secrets [ObjectReference]",
        3: "imagePullSecrets [LocalObjectReference]", 4: "automountServiceAccountToken bool",
    },
    "ConfigMap": {
        1: "metadata ObjectMeta", 2: "data {string}", 3: "binaryData {bytes}", 4: "immutable bool",
    },
    "Secret": {
        1: "metadata ObjectMeta", 2: "data {bytes}", 3: "type string", 4: "stringData {string}",
        5: "immutable bool",
    },
    "ResourceQuota": {1: "metadata ObjectMeta", 2: "spec ResourceQuotaSpec", 3: "status -"},
    "ResourceQuotaSpec": {1: "hard {quantity}", 2: "scopes [string]"},
    "Service": {1: "metadata ObjectMeta", 2: "spec ServiceSpec", 3: "status -"},
    "ServiceSpec": {
        1: "ports [ServicePort]", 2: "selector {string}", 3: "clusterIP string", 4: "type string",
        5: "externalIPs [string]", 7: "sessionAffinity string", 8: "loadBalancerIP string",
        9: "loadBalancerSourceRanges [string]", 10: "externalName string",
        11: "externalTrafficPolicy string", 12: "healthCheckNodePort count",
        13: "publishNotReadyAddresses flag", 17: "ipFamilyPolicy string",
        18: "clusterIPs [string]", 19: "ipFamilies [string]",
    },
    "ServicePort": {
        1: "name string", 2: "protocol string", 3: "port int", 4: "targetPort int_or_string",
        5: "nodePort count", 6: "appProtocol string",
    },
    "Job": {1: "metadata ObjectMeta", 2: "spec JobSpec", 3: "status -"},
    "JobSpec": {
        1: "parallelism int", 2: "completions int", 3: "activeDeadlineSeconds int",
        4: "selector LabelSelector", 5: "manualSelector bool", 6: "template PodTemplateSpec",
        7: "backoffLimit int", 8: "ttlSecondsAfterFinished int", 9: "completionMode string",
        10: "suspend bool", 12: "backoffLimitPerIndex int", 13: "maxFailedIndexes int",
        14: "podReplacementPolicy string", 15: "managedBy string",
    },
    "PodTemplateSpec": {1: "metadata ObjectMeta", 2: "spec PodSpec"},
    "PodSpec": {
        2: "containers [Container]", 3: "restartPolicy string",
        4: "terminationGracePeriodSeconds int", 5: "activeDeadlineSeconds int",
        6: "dnsPolicy string", 7: "nodeSelector {string}", 8: "serviceAccountName string",
        9: "serviceAccount string", 10: "nodeName string", 11: "hostNetwork flag",
        12: "hostPID flag", 13: "hostIPC flag", 15: "imagePullSecrets [LocalObjectReference]",
        16: "hostname string", 17: "subdomain string", 19: "schedulerName string",
        20: "initContainers [Container]", 21: "automountServiceAccountToken bool",
        24: "priorityClassName string", 25: "priority int",
    },
    "Container": {
        1: "name string", 2: "image string", 3: "command [string]", 4: "args [string]",
        5: "workingDir string", 6: "ports [ContainerPort]", 7: "env [EnvVar]",
        8: "resources Resources", 13: "terminationMessagePath string",
        14: "imagePullPolicy string", 16: "stdin flag", 17: "stdinOnce flag", 18: "tty flag",
        20: "terminationMessagePolicy string", 24: "restartPolicy string",
    },
    "ContainerPort": {
        1: "name string", 2: "hostPort count", 3: "containerPort int", 4: "protocol string",
        5: "hostIP string",
    },
    "EnvVar": {1: "name string", 2: "value string"},
    "Resources": {1: "limits {quantity}", 2: "requests {quantity}"},
    "Role": {1: "metadata ObjectMeta", 2: "rules [PolicyRule]"},
    "PolicyRule": {
        1: "verbs [string]", 2: "apiGroups [string]", 3: "resources [string]",
        4: "resourceNames [string]", 5: "nonResourceURLs [string]",
    },
    "RoleBinding": {1: "metadata ObjectMeta", 2: "subjects [Subject]", 3: "roleRef RoleRef"},
    "Subject": {
        1: "kind string", 2: "apiGroup string", 3: "name string", 4: "namespace string",
    },
    "RoleRef": {1: "apiGroup string", 2: "kind string", 3: "name string"},
    "PriorityClass": {
        1: "metadata ObjectMeta", 2: "value int", 3: "globalDefault flag",
        4: "description string", 5: "preemptionPolicy string",
    },
    "SelfSubjectReview": {1: "metadata ObjectMeta", 2: "status -"},
    "SelfSubjectAccessReview": {1: "metadata ObjectMeta", 2: "spec AccessSpec", 3: "status -"},
    "AccessSpec": {
        1: "resourceAttributes ResourceAttributes", 2: "nonResourceAttributes PathAttributes",
    },
    "ResourceAttributes": {
        1: "namespace string", 2: "verb string", 3: "group string", 4: "version string",
        5: "resource string", 6: "subresource string", 7: "name string",
    },
    "PathAttributes": {1: "path string", 2: "verb string"},
    "SelfSubjectRulesReview": {1: "metadata ObjectMeta", 2: "spec RulesSpec", 3: "status -"},
    "RulesSpec": {1: "namespace string"},
    "TokenRequest": {1: "metadata ObjectMeta", 2: "spec TokenRequestSpec", 3: "status -"},
    "TokenRequestSpec": {
        1: "audiences [string]", 3: "boundObjectRef BoundObject", 4: "expirationSeconds int",
    },
    "BoundObject": {1: "kind string", 2: "apiVersion string", 3: "name string", 4: "uid string"},
    "Eviction": {1: "metadata ObjectMeta", 2: "deleteOptions DeleteOptions"},
}  # fmt: skip

_KINDS: Mapping[tuple[str, str], str] = {
    ("v1", "Namespace"): "Namespace",
    ("v1", "ServiceAccount"): "ServiceAccount",
    ("v1", "ConfigMap"): "ConfigMap",
    ("v1", "Secret"): "Secret",
    ("v1", "ResourceQuota"): "ResourceQuota",
    ("v1", "Service"): "Service",
    ("batch/v1", "Job"): "Job",
    ("rbac.authorization.k8s.io/v1", "Role"): "Role",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "Role",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "RoleBinding",
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): "RoleBinding",
    ("scheduling.k8s.io/v1", "PriorityClass"): "PriorityClass",
    ("authentication.k8s.io/v1", "SelfSubjectReview"): "SelfSubjectReview",
    ("authentication.k8s.io/v1", "TokenRequest"): "TokenRequest",
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): "SelfSubjectAccessReview",
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): "SelfSubjectRulesReview",
    ("policy/v1", "Eviction"): "Eviction",
}


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    type: str
    shape: str
    """`one`, `list` or `map`."""


def decode_protobuf(body: bytes) -> Object:
    """Decode one object with its envelope.

    Raises:
        BadRequest: no protobuf of Kubernetes, or cut short.
        UnsupportedMediaType: a kind or field that is read as JSON only.
    """
    if not body.startswith(MAGIC):
        raise BadRequest("the body of the request is no Kubernetes protobuf")
    try:
        return _decode_envelope(body[len(MAGIC) :])
    except (IndexError, UnicodeDecodeError) as error:
        raise BadRequest("the body of the request is protobuf that was cut short") from error


def _decode_envelope(data: bytes) -> Object:
    envelope = dict(_read_fields(data))
    type_meta = dict(_read_fields(_bytes(envelope.get(1, b""))))
    api_version = _bytes(type_meta.get(1, b"")).decode()
    kind = _bytes(type_meta.get(2, b"")).decode()
    message = "DeleteOptions" if kind == "DeleteOptions" else _KINDS.get((api_version, kind))
    if message is None:
        raise _as_json(f"{kind} of {api_version}")
    decoded = _decode_message(message, _bytes(envelope.get(2, b"")), MAX_DEPTH)
    return {"apiVersion": api_version, "kind": kind, **decoded}


def _as_json(what: str) -> UnsupportedMediaType:
    return UnsupportedMediaType(f"{what} is not read as protobuf here; send application/json")


@functools.cache
def _fields_of(message: str) -> Mapping[int, _Field]:
    fields = {}
    for number, text in _MESSAGES[message].items():
        name, kind = text.split()
        shape = {"[": "list", "{": "map"}.get(kind[0], "one")
        fields[number] = _Field(name, kind.strip("[]{}"), shape)
    return fields


def _decode_message(message: str, data: bytes, depth: int) -> Object:
    if depth == 0:
        raise BadRequest("the body of the request is nested too deeply")
    fields = _fields_of(message)
    decoded: Object = {}
    for number, value in _read_fields(data):
        field = fields.get(number)
        if field is None:
            raise _as_json(f"field {number} of {message}")
        if field.type == "-":
            continue
        if field.shape == "map":
            entry = dict(_read_fields(_bytes(value)))
            key = _bytes(entry.get(1, b"")).decode()
            item = _decode_value(field.type, entry.get(2, b""), depth)
            decoded.setdefault(field.name, {})[key] = item
            continue
        item = _decode_value(field.type, value, depth)
        if field.shape == "list":
            decoded.setdefault(field.name, []).append(item)
        elif item is not None and item not in ("", {}):
            decoded[field.name] = item
    return decoded


def _decode_value(kind: str, value: int | bytes, depth: int) -> Any:
    decode = _SCALARS.get(kind)
    return decode(value) if decode else _decode_message(kind, _bytes(value), depth - 1)


def _signed(value: int | bytes) -> int:
    number = _int(value)
    return number - (1 << 64) if number >> 63 else number


def _quantity(value: int | bytes) -> str:
    return _bytes(dict(_read_fields(_bytes(value))).get(1, b"0")).decode()


def _int_or_string(value: int | bytes) -> int | str:
    parts = dict(_read_fields(_bytes(value)))
    return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _signed(parts.get(2, 0))


_SCALARS: Mapping[str, Callable[[int | bytes], Any]] = {
    "string": lambda value: _bytes(value).decode(),
    "bytes": lambda value: base64.b64encode(_bytes(value)).decode(),
    "int": _signed,
    "count": lambda value: _signed(value) or None,
    "bool": lambda value: bool(_int(value)),
    "flag": lambda value: bool(_int(value)) or None,
    "quantity": _quantity,
    "int_or_string": _int_or_string,
}


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise BadRequest("the body of the request is protobuf with a number where bytes belong")
    return value


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise BadRequest("the body of the request is protobuf with bytes where a number belongs")
    return value


def _read_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            number, at = _read_varint(data, at)
            yield tag >> 3, number
            continue
        if wire == 2:
            length, at = _read_varint(data, at)
        elif wire in {1, 5}:
            length = 8 if wire == 1 else 4
        else:
            raise BadRequest("the body of the request is protobuf of an unknown wire type")
        end = at + length
        if end > len(data):
            raise IndexError(end)
        yield tag >> 3, data[at:end]
        at = end


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise BadRequest("the body of the request is protobuf with too long a number")
