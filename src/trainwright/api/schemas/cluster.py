"""Nodes, leases, priority and runtime classes, and CustomResourceDefinitions."""

from __future__ import annotations

from trainwright.api.schemas.pods import TOLERATION
from trainwright.api.schemas.structural import (
    Schema,
    atomic,
    atomic_string_map,
    boolean,
    int32,
    int64,
    keyed,
    merged,
    obj,
    open_obj,
    quantity_map,
    set_of,
    string,
    strings,
    time,
)

_CONFIG_SOURCE = open_obj()

NODE_SPEC = obj(
    "What is wanted of the node.",
    {
        "configSource": _CONFIG_SOURCE,
        "externalID": string(),
        "podCIDR": string(),
        "podCIDRs": merged(set_of({"type": "string"})),
        "providerID": string(),
        "taints": atomic(
            obj(
                "Keeps Pods away that do not bear it.",
                {"key": string(), "value": string(), "effect": string(), "timeAdded": time()},
                ("effect", "key"),
            ),
            "Taints of the node.",
        ),
        "unschedulable": boolean("Whether no new Pods are placed here."),
    },
)

_CONDITION_FIELDS: dict[str, Schema] = {
    "type": string(),
    "status": string(),
    "reason": string(),
    "message": string(),
    "lastTransitionTime": time(),
}

_NODE_INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)

NODE_STATUS = obj(
    "State of the node.",
    {
        "addresses": keyed(
            "type", obj("", {"address": string(), "type": string()}, ("address", "type"))
        ),
        "allocatable": quantity_map("What Pods can use."),
        "capacity": quantity_map("What the node has."),
        "conditions": keyed(
            "type",
            obj("", {**_CONDITION_FIELDS, "lastHeartbeatTime": time()}, ("status", "type")),
        ),
        "config": open_obj(),
        "daemonEndpoints": obj("", {"kubeletEndpoint": obj("", {"Port": int32()}, ("Port",))}),
        "declaredFeatures": strings(),
        "features": obj("", {"supplementalGroupsPolicy": boolean()}),
        "images": atomic(obj("", {"names": strings(), "sizeBytes": int64()})),
        "nodeInfo": obj(
            "Facts about the system.",
            {field: string() for field in _NODE_INFO} | {"swap": obj("", {"capacity": int64()})},
            _NODE_INFO,
        ),
        "phase": string(),
        "runtimeHandlers": atomic(
            obj(
                "",
                {
                    "features": obj(
                        "", {"recursiveReadOnlyMounts": boolean(), "userNamespaces": boolean()}
                    ),
                    "name": string(),
                },
            )
        ),
        "volumesAttached": atomic(
            obj("", {"devicePath": string(), "name": string()}, ("devicePath", "name"))
        ),
        "volumesInUse": strings(),
    },
)

_CRD_NAMES = obj(
    "Names of the kind.",
    {
        "categories": strings(),
        "kind": string(),
        "listKind": string(),
        "plural": string(),
        "shortNames": strings(),
        "singular": string(),
    },
    ("kind", "plural"),
)

_CRD_VERSION = obj(
    "One version of the kind.",
    {
        "additionalPrinterColumns": atomic(
            obj(
                "One column of `kubectl get`.",
                {
                    "description": string(),
                    "format": string(),
                    "jsonPath": string(),
                    "name": string(),
                    "priority": int32(),
                    "type": string(),
                },
                ("jsonPath", "name", "type"),
            )
        ),
        "deprecated": boolean(),
        "deprecationWarning": string(),
        "name": string("Name of the version."),
        "schema": obj("", {"openAPIV3Schema": open_obj("Schema of the objects.")}),
        "selectableFields": atomic(obj("", {"jsonPath": string()}, ("jsonPath",))),
        "served": boolean("Whether clients can use it."),
        "storage": boolean("Whether objects are kept in it."),
        "subresources": obj(
            "Subresources of the objects.",
            {
                "scale": obj(
                    "",
                    {
                        "labelSelectorPath": string(),
                        "specReplicasPath": string(),
                        "statusReplicasPath": string(),
                    },
                    ("specReplicasPath", "statusReplicasPath"),
                ),
                "status": open_obj(),
            },
        ),
    },
    ("name", "served", "storage"),
)

_CRD = obj(
    "A kind that the server learns.",
    {
        "spec": obj(
            "The kind.",
            {
                "conversion": open_obj("How versions are converted."),
                "group": string("API group of the kind."),
                "names": _CRD_NAMES,
                "preserveUnknownFields": boolean(),
                "scope": string("Namespaced or Cluster."),
                "versions": atomic(_CRD_VERSION, "Versions of the kind."),
            },
            ("group", "names", "scope", "versions"),
        ),
        "status": obj(
            "State of the kind.",
            {
                "acceptedNames": _CRD_NAMES,
                "conditions": keyed(
                    "type",
                    obj(
                        "",
                        {**_CONDITION_FIELDS, "observedGeneration": int64()},
                        ("status", "type"),
                    ),
                ),
                "observedGeneration": int64(),
                "storedVersions": strings(),
            },
        ),
    },
    ("spec",),
)

_LEASE = obj(
    "Who leads.",
    {
        "spec": obj(
            "",
            {
                "acquireTime": time(),
                "holderIdentity": string("Who holds it."),
                "leaseDurationSeconds": int32("Seconds that it holds after the last renewal."),
                "leaseTransitions": int32(),
                "preferredHolder": string(),
                "renewTime": time("When it was last renewed."),
                "strategy": string(),
            },
        )
    },
)

_PRIORITY_CLASS = obj(
    "A priority and its name.",
    {
        "description": string("What it is for."),
        "globalDefault": boolean("Whether Pods without a class get it."),
        "preemptionPolicy": string("PreemptLowerPriority or Never."),
        "value": int32("The priority."),
    },
    ("value",),
)

_RUNTIME_CLASS = obj(
    "A way of running containers.",
    {
        "handler": string("Configuration of the node's runtime."),
        "overhead": obj("", {"podFixed": quantity_map("What each Pod costs on top.")}),
        "scheduling": obj(
            "",
            {
                "nodeSelector": atomic_string_map("Labels of nodes that have it."),
                "tolerations": atomic(TOLERATION),
            },
        ),
    },
    ("handler",),
)

ROOTS: dict[str, Schema] = {
    "Lease": _LEASE,
    "PriorityClass": _PRIORITY_CLASS,
    "RuntimeClass": _RUNTIME_CLASS,
    "CustomResourceDefinition": _CRD,
}
