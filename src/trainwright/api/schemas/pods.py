"""Definitions of Pods: spec, template and status at the level of Kubernetes 1.36."""

from __future__ import annotations

from trainwright.api.schemas.containers import (
    CONTAINER,
    CONTAINER_STATUS,
    EPHEMERAL_CONTAINER,
    PROFILE,
    RESOURCES,
    SELINUX,
    WINDOWS,
)
from trainwright.api.schemas.metadata import LABEL_SELECTOR, LOCAL_OBJECT_REFERENCE
from trainwright.api.schemas.structural import (
    Schema,
    atomic,
    atomic_obj,
    atomic_string_map,
    boolean,
    described,
    int32,
    int64,
    keyed,
    list_map,
    merged,
    obj,
    quantity_map,
    string,
    strings,
    time,
)
from trainwright.api.schemas.volumes import VOLUME

RETAIN_KEYS = "merge,retainKeys"

_NODE_REQUIREMENTS = atomic(
    obj(
        "One requirement.",
        {"key": string(), "operator": string(), "values": strings()},
        ("key", "operator"),
    )
)
_NODE_TERM = atomic_obj(
    "Requirements that must all hold.",
    {"matchExpressions": _NODE_REQUIREMENTS, "matchFields": _NODE_REQUIREMENTS},
)

NODE_AFFINITY = obj(
    "Which nodes are wanted.",
    {
        "preferredDuringSchedulingIgnoredDuringExecution": atomic(
            obj(
                "A wish and its weight.",
                {"preference": _NODE_TERM, "weight": int32("1 to 100.")},
                ("preference", "weight"),
            )
        ),
        "requiredDuringSchedulingIgnoredDuringExecution": atomic_obj(
            "One of the terms must hold.",
            {"nodeSelectorTerms": atomic(_NODE_TERM)},
            ("nodeSelectorTerms",),
        ),
    },
)

_POD_TERM = obj(
    "Pods and the domain to share with them.",
    {
        "labelSelector": LABEL_SELECTOR,
        "matchLabelKeys": strings(),
        "mismatchLabelKeys": strings(),
        "namespaceSelector": LABEL_SELECTOR,
        "namespaces": strings(),
        "topologyKey": string("Label of nodes that makes the domain."),
    },
    ("topologyKey",),
)
_POD_AFFINITY = obj(
    "Which Pods are wanted near.",
    {
        "preferredDuringSchedulingIgnoredDuringExecution": atomic(
            obj(
                "A wish and its weight.",
                {"podAffinityTerm": _POD_TERM, "weight": int32("1 to 100.")},
                ("podAffinityTerm", "weight"),
            )
        ),
        "requiredDuringSchedulingIgnoredDuringExecution": atomic(_POD_TERM),
    },
)

AFFINITY = obj(
    "Where the Pod may or should run.",
    {
        "nodeAffinity": NODE_AFFINITY,
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": described(_POD_AFFINITY, "Which Pods are wanted far."),
    },
)

TOLERATION = obj(
    "A taint of nodes that the Pod bears.",
    {
        "key": string("Key of the taint; empty for all."),
        "operator": string("Exists, Equal (the default), Lt or Gt."),
        "value": string("Value of the taint."),
        "effect": string("NoSchedule, PreferNoSchedule or NoExecute; empty for all."),
        "tolerationSeconds": int64("Seconds that NoExecute is borne."),
    },
)

SCHEDULING_GATE = obj("A hold on scheduling.", {"name": string("Name of the gate.")}, ("name",))

POD_SECURITY_CONTEXT = obj(
    "Rights of all containers of the Pod.",
    {
        "appArmorProfile": PROFILE,
        "fsGroup": int64("Group id that owns the volumes."),
        "fsGroupChangePolicy": string(),
        "runAsGroup": int64("Group id of the processes."),
        "runAsNonRoot": boolean("Whether they must not be root."),
        "runAsUser": int64("User id of the processes."),
        "seLinuxChangePolicy": string(),
        "seLinuxOptions": SELINUX,
        "seccompProfile": PROFILE,
        "supplementalGroups": atomic(int64()),
        "supplementalGroupsPolicy": string(),
        "sysctls": atomic(obj("", {"name": string(), "value": string()}, ("name", "value"))),
        "windowsOptions": WINDOWS,
    },
)

POD_SPEC = obj(
    "What the Pod is to run, and where.",
    {
        "activeDeadlineSeconds": int64("Seconds after which the Pod is failed."),
        "affinity": AFFINITY,
        "automountServiceAccountToken": boolean("Whether the account's token is mounted."),
        "containers": keyed("name", CONTAINER, "Containers that run side by side."),
        "dnsConfig": obj(
            "Resolver settings.",
            {
                "nameservers": strings(),
                "options": atomic(obj("", {"name": string(), "value": string()})),
                "searches": strings(),
            },
        ),
        "dnsPolicy": string("ClusterFirst, ClusterFirstWithHostNet, Default or None."),
        "enableServiceLinks": boolean(),
        "ephemeralContainers": keyed("name", EPHEMERAL_CONTAINER),
        "hostAliases": keyed(
            "ip",
            obj("", {"hostnames": strings("Names of the address."), "ip": string()}, ("ip",)),
            "Further lines of the hosts file.",
        ),
        "hostIPC": boolean(),
        "hostNetwork": boolean("Whether it uses the node's network."),
        "hostPID": boolean(),
        "hostUsers": boolean(),
        "hostname": string("Host name of the Pod."),
        "hostnameOverride": string(),
        "imagePullSecrets": keyed("name", LOCAL_OBJECT_REFERENCE, "Secrets to pull images with."),
        "initContainers": keyed("name", CONTAINER, "Containers that run first, one by one."),
        "nodeName": string("Node that the Pod is bound to."),
        "nodeSelector": atomic_string_map("Labels that the node must have."),
        "os": obj("", {"name": string()}, ("name",)),
        "overhead": quantity_map("What running the Pod costs on top."),
        "preemptionPolicy": string(),
        "priority": int32("Filled from the priority class."),
        "priorityClassName": string("Priority class of the Pod."),
        "readinessGates": atomic(obj("", {"conditionType": string()}, ("conditionType",))),
        "resourceClaims": merged(
            list_map(
                ("name",),
                obj(
                    "A claim of devices.",
                    {
                        "name": string(),
                        "resourceClaimName": string(),
                        "resourceClaimTemplateName": string(),
                    },
                    ("name",),
                ),
                "Devices that the Pod claims.",
            ),
            "name",
            RETAIN_KEYS,
        ),
        "resources": described(RESOURCES, "Resources of the Pod as a whole."),
        "restartPolicy": string("Always, OnFailure or Never."),
        "runtimeClassName": string("Runtime class of the Pod."),
        "schedulerName": string("Scheduler that places the Pod."),
        "schedulingGates": keyed("name", SCHEDULING_GATE, "Holds on scheduling."),
        "schedulingGroup": obj("", {"podGroupName": string()}),
        "securityContext": POD_SECURITY_CONTEXT,
        "serviceAccount": string("Old name of serviceAccountName."),
        "serviceAccountName": string("Service account that the Pod runs as."),
        "setHostnameAsFQDN": boolean(),
        "shareProcessNamespace": boolean(),
        "subdomain": string("Headless service that names the Pod."),
        "terminationGracePeriodSeconds": int64("Seconds between the stop signal and the kill."),
        "tolerations": atomic(TOLERATION, "Taints that the Pod bears."),
        "topologySpreadConstraints": merged(
            list_map(
                ("topologyKey", "whenUnsatisfiable"),
                obj(
                    "How evenly Pods are spread.",
                    {
                        "labelSelector": LABEL_SELECTOR,
                        "matchLabelKeys": strings(),
                        "maxSkew": int32(),
                        "minDomains": int32(),
                        "nodeAffinityPolicy": string(),
                        "nodeTaintsPolicy": string(),
                        "topologyKey": string(),
                        "whenUnsatisfiable": string(),
                    },
                    ("maxSkew", "topologyKey", "whenUnsatisfiable"),
                ),
                "How evenly Pods are spread over domains.",
            ),
            "topologyKey",
        ),
        "volumes": merged(
            list_map(("name",), VOLUME, "Volumes that containers can mount."), "name", RETAIN_KEYS
        ),
    },
    ("containers",),
)


def build_template(metadata: Schema) -> Schema:
    """A Pod template with the metadata that is known where it stands."""
    return obj("The Pods to make.", {"metadata": metadata, "spec": POD_SPEC})


_STATUSES = atomic(CONTAINER_STATUS)

POD_STATUS = obj(
    "State of the Pod.",
    {
        "allocatedResources": quantity_map(),
        "conditions": keyed(
            "type",
            obj(
                "One aspect of the state.",
                {
                    "type": string("PodScheduled, Initialized, ContainersReady, Ready, ..."),
                    "status": string("True, False or Unknown."),
                    "reason": string(),
                    "message": string(),
                    "lastProbeTime": time(),
                    "lastTransitionTime": time(),
                    "observedGeneration": int64(),
                },
                ("status", "type"),
            ),
            "Aspects of the state.",
        ),
        "containerStatuses": described(_STATUSES, "State of each container."),
        "ephemeralContainerStatuses": _STATUSES,
        "extendedResourceClaimStatus": obj(
            "",
            {
                "requestMappings": atomic(
                    obj(
                        "",
                        {
                            "containerName": string(),
                            "requestName": string(),
                            "resourceName": string(),
                        },
                        ("containerName", "requestName", "resourceName"),
                    )
                ),
                "resourceClaimName": string(),
            },
            ("requestMappings", "resourceClaimName"),
        ),
        "hostIP": string("Address of the node."),
        "hostIPs": merged(atomic(obj("", {"ip": string()}, ("ip",))), "ip"),
        "initContainerStatuses": described(_STATUSES, "State of each init container."),
        "message": string("Why the Pod is in this state, in a sentence."),
        "nominatedNodeName": string(),
        "observedGeneration": int64(),
        "phase": string("Pending, Running, Succeeded, Failed or Unknown."),
        "podIP": string("Address of the Pod."),
        "podIPs": keyed("ip", obj("", {"ip": string()}, ("ip",)), "Addresses of the Pod."),
        "qosClass": string("Guaranteed, Burstable or BestEffort."),
        "reason": string("Why the Pod is in this state, in one word."),
        "resize": string(),
        "resourceClaimStatuses": merged(
            list_map(
                ("name",),
                obj("", {"name": string(), "resourceClaimName": string()}, ("name",)),
            ),
            "name",
            RETAIN_KEYS,
        ),
        "resources": RESOURCES,
        "startTime": time("When the node took the Pod up."),
    },
)
