"""Roots of the core group: Pod, Service, ConfigMap and the others that clients meet."""

from __future__ import annotations

from trainwright.api.schemas.cluster import NODE_SPEC, NODE_STATUS
from trainwright.api.schemas.events import CORE_EVENT
from trainwright.api.schemas.metadata import CONDITION, LOCAL_OBJECT_REFERENCE, OBJECT_REFERENCE
from trainwright.api.schemas.pods import POD_SPEC, POD_STATUS
from trainwright.api.schemas.structural import (
    Schema,
    atomic,
    atomic_obj,
    atomic_string_map,
    boolean,
    int32,
    int_or_string,
    keyed,
    list_map,
    map_of,
    merged,
    obj,
    quantity_map,
    string,
    string_map,
    strings,
    time,
)
from trainwright.api.schemas.volumes import PVC_SPEC, PVC_STATUS

_BYTES: Schema = {"type": "string", "format": "byte"}
_IMMUTABLE = boolean("Whether data can no longer change.")

_SERVICE_PORT = obj(
    "One port.",
    {
        "name": string("Name of the port."),
        "port": int32("Number of the port."),
        "targetPort": int_or_string("Number or name of the Pods' port."),
        "nodePort": int32("Port of the nodes."),
        "protocol": string("TCP, UDP or SCTP.", default="TCP"),
        "appProtocol": string(),
    },
    ("port",),
)

SERVICE_SPEC = obj(
    "How Pods are reached.",
    {
        "allocateLoadBalancerNodePorts": boolean(),
        "clusterIP": string("Address of the service; None for a headless one."),
        "clusterIPs": strings(),
        "externalIPs": strings(),
        "externalName": string(),
        "externalTrafficPolicy": string(),
        "healthCheckNodePort": int32(),
        "internalTrafficPolicy": string(),
        "ipFamilies": strings(),
        "ipFamilyPolicy": string(),
        "loadBalancerClass": string(),
        "loadBalancerIP": string(),
        "loadBalancerSourceRanges": strings(),
        "ports": merged(
            list_map(("port", "protocol"), _SERVICE_PORT, "Ports of the service."), "port"
        ),
        "publishNotReadyAddresses": boolean("Whether names resolve before Pods are ready."),
        "selector": atomic_string_map("Labels of the Pods."),
        "sessionAffinity": string(),
        "sessionAffinityConfig": obj("", {"clientIP": obj("", {"timeoutSeconds": int32()})}),
        "trafficDistribution": string(),
        "type": string("ClusterIP, NodePort, LoadBalancer or ExternalName."),
    },
)

_PORT_STATUS = obj(
    "", {"error": string(), "port": int32(), "protocol": string()}, ("port", "protocol")
)
SERVICE_STATUS = obj(
    "State of the service.",
    {
        "conditions": keyed("type", CONDITION),
        "loadBalancer": obj(
            "",
            {
                "ingress": atomic(
                    obj(
                        "",
                        {
                            "hostname": string(),
                            "ip": string(),
                            "ipMode": string(),
                            "ports": atomic(_PORT_STATUS),
                        },
                    )
                )
            },
        ),
    },
)

_SCOPE_SELECTOR = atomic_obj(
    "",
    {
        "matchExpressions": atomic(
            obj(
                "",
                {"operator": string(), "scopeName": string(), "values": strings()},
                ("operator", "scopeName"),
            )
        )
    },
)

_NAMESPACE_CONDITION = obj(
    "",
    {
        "type": string(),
        "status": string(),
        "lastTransitionTime": time(),
        "reason": string(),
        "message": string(),
    },
    ("status", "type"),
)

ROOTS: dict[str, Schema] = {
    "Namespace": obj(
        "A scope for names.",
        {
            "spec": obj("", {"finalizers": strings("What must be gone before the namespace.")}),
            "status": obj(
                "State of the namespace.",
                {
                    "conditions": keyed("type", _NAMESPACE_CONDITION),
                    "phase": string("Active or Terminating."),
                },
            ),
        },
    ),
    "Pod": obj("Containers that run together.", {"spec": POD_SPEC, "status": POD_STATUS}),
    "Service": obj("A name for Pods.", {"spec": SERVICE_SPEC, "status": SERVICE_STATUS}),
    "ConfigMap": obj(
        "Settings for Pods.",
        {
            "binaryData": map_of(_BYTES, "Bytes by key, in base64."),
            "data": string_map("Texts by key."),
            "immutable": _IMMUTABLE,
        },
    ),
    "Secret": obj(
        "Secret data for Pods.",
        {
            "data": map_of(_BYTES, "Bytes by key, in base64."),
            "immutable": _IMMUTABLE,
            "stringData": string_map("Texts by key; only written, kept in data."),
            "type": string("What the keys mean; Opaque when unset."),
        },
    ),
    "ServiceAccount": obj(
        "An identity for Pods.",
        {
            "automountServiceAccountToken": boolean(),
            "imagePullSecrets": atomic(LOCAL_OBJECT_REFERENCE, "Secrets to pull images with."),
            "secrets": merged(atomic(OBJECT_REFERENCE, "Secrets of the account."), "name"),
        },
    ),
    "Node": obj("A machine.", {"spec": NODE_SPEC, "status": NODE_STATUS}),
    "Event": CORE_EVENT,
    "PersistentVolumeClaim": obj("A claim of storage.", {"spec": PVC_SPEC, "status": PVC_STATUS}),
    "ResourceQuota": obj(
        "Limits of a namespace.",
        {
            "spec": obj(
                "The limits.",
                {
                    "hard": quantity_map("Most of each resource."),
                    "scopeSelector": _SCOPE_SELECTOR,
                    "scopes": strings(),
                },
            ),
            "status": obj("", {"hard": quantity_map(), "used": quantity_map("What is in use.")}),
        },
    ),
    "LimitRange": obj(
        "Bounds and defaults of resources in a namespace.",
        {
            "spec": obj(
                "The bounds.",
                {
                    "limits": atomic(
                        obj(
                            "Bounds of one type.",
                            {
                                "type": string("Container, Pod or PersistentVolumeClaim."),
                                "default": quantity_map("Limits when none are set."),
                                "defaultRequest": quantity_map("Requests when none are set."),
                                "max": quantity_map(),
                                "min": quantity_map(),
                                "maxLimitRequestRatio": quantity_map(),
                            },
                            ("type",),
                        ),
                        "Bounds by type.",
                    )
                },
                ("limits",),
            )
        },
    ),
}
