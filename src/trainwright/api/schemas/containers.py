"""Definitions of containers: environment, ports, mounts, probes, security and their states."""

from __future__ import annotations

from trainwright.api.schemas.structural import (
    Schema,
    atomic,
    atomic_obj,
    boolean,
    described,
    int32,
    int64,
    int_or_string,
    keyed,
    list_map,
    merged,
    obj,
    quantity_map,
    string,
    strings,
    time,
)
from trainwright.api.schemas.volumes import OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR


def _key_selector(of: str) -> Schema:
    return atomic_obj(
        f"One key of a {of}.",
        {
            "name": string(f"Name of the {of}.", default=""),
            "key": string("The key."),
            "optional": boolean("Whether it may be missing."),
        },
        ("key",),
    )


ENV_VAR = obj(
    "One environment variable.",
    {
        "name": string("Name of the variable."),
        "value": string("Its value; $(NAME) stands for a variable named earlier."),
        "valueFrom": obj(
            "Where the value comes from.",
            {
                "configMapKeyRef": _key_selector("ConfigMap"),
                "secretKeyRef": _key_selector("Secret"),
                "fieldRef": OBJECT_FIELD_SELECTOR,
                "resourceFieldRef": RESOURCE_FIELD_SELECTOR,
                "fileKeyRef": atomic_obj(
                    "One key of an env file in a volume.",
                    {
                        "volumeName": string("Volume with the file."),
                        "path": string("Path within the volume."),
                        "key": string("The key."),
                        "optional": boolean("Whether it may be missing.", default=False),
                    },
                    ("key", "path", "volumeName"),
                ),
            },
        ),
    },
    ("name",),
)

_WHOLE_SOURCE = atomic_obj(
    "All keys of an object.",
    {
        "name": string("Name of the object.", default=""),
        "optional": boolean("Whether it may be missing."),
    },
)

ENV_FROM = obj(
    "Variables from all keys of an object.",
    {
        "prefix": string("Put before each key."),
        "configMapRef": _WHOLE_SOURCE,
        "secretRef": _WHOLE_SOURCE,
    },
)

CONTAINER_PORT = obj(
    "A port that the container serves.",
    {
        "containerPort": int32("Number of the port."),
        "name": string("Name of the port."),
        "protocol": string("TCP, UDP or SCTP.", default="TCP"),
        "hostIP": string(),
        "hostPort": int32("Port of the node to serve it on as well."),
    },
    ("containerPort",),
)

VOLUME_MOUNT = obj(
    "Where a volume is mounted.",
    {
        "name": string("Name of the volume."),
        "mountPath": string("Path in the container."),
        "mountPropagation": string(),
        "readOnly": boolean("Whether the container may only read it."),
        "recursiveReadOnly": string(),
        "subPath": string("Path within the volume."),
        "subPathExpr": string("Path within the volume, with variables."),
    },
    ("mountPath", "name"),
)

RESOURCE_CLAIMS = list_map(
    ("name",),
    obj(
        "A claim of the Pod that the container uses.",
        {"name": string("Name in resourceClaims of the Pod."), "request": string()},
        ("name",),
    ),
    "Devices that the container uses.",
)

RESOURCES = obj(
    "Compute resources.",
    {
        "limits": quantity_map("Most that may be used."),
        "requests": quantity_map("What must be there; taken from limits when unset."),
        "claims": RESOURCE_CLAIMS,
    },
)

_HTTP_GET = obj(
    "An HTTP request.",
    {
        "host": string(),
        "httpHeaders": atomic(
            obj("", {"name": string(), "value": string()}, ("name", "value")), "Headers to send."
        ),
        "path": string("Path to ask for."),
        "port": int_or_string("Number or name of the port."),
        "scheme": string("HTTP or HTTPS."),
    },
    ("port",),
)
_EXEC = obj("A command run in the container.", {"command": strings("Command and arguments.")})
_TCP_SOCKET = obj(
    "A TCP connection.",
    {"host": string(), "port": int_or_string("Number or name of the port.")},
    ("port",),
)

PROBE = obj(
    "A check that is run again and again.",
    {
        "exec": _EXEC,
        "httpGet": _HTTP_GET,
        "tcpSocket": _TCP_SOCKET,
        "grpc": obj(
            "A gRPC health check.", {"port": int32(), "service": string(default="")}, ("port",)
        ),
        "initialDelaySeconds": int32("Seconds before the first check."),
        "timeoutSeconds": int32("Seconds that a check may take."),
        "periodSeconds": int32("Seconds between checks."),
        "successThreshold": int32("Successes in a row that count as good."),
        "failureThreshold": int32("Failures in a row that count as bad."),
        "terminationGracePeriodSeconds": int64(),
    },
)

_HANDLER = obj(
    "What to do.",
    {
        "exec": _EXEC,
        "httpGet": _HTTP_GET,
        "tcpSocket": _TCP_SOCKET,
        "sleep": obj("A pause.", {"seconds": int64()}, ("seconds",)),
    },
)

LIFECYCLE = obj(
    "What to do around start and stop.",
    {
        "postStart": described(_HANDLER, "Done right after the start."),
        "preStop": described(_HANDLER, "Done before the container is told to stop."),
        "stopSignal": string("Signal that tells the container to stop."),
    },
)

SELINUX = obj("", {"level": string(), "role": string(), "type": string(), "user": string()})
PROFILE = obj("", {"type": string(), "localhostProfile": string()}, ("type",))
WINDOWS = obj(
    "",
    {
        "gmsaCredentialSpec": string(),
        "gmsaCredentialSpecName": string(),
        "hostProcess": boolean(),
        "runAsUserName": string(),
    },
)

SECURITY_CONTEXT = obj(
    "Rights of the container.",
    {
        "allowPrivilegeEscalation": boolean(),
        "appArmorProfile": PROFILE,
        "capabilities": obj("Capabilities.", {"add": strings(), "drop": strings()}),
        "privileged": boolean("Whether it is root on the node."),
        "procMount": string(),
        "readOnlyRootFilesystem": boolean("Whether its own files are read-only."),
        "runAsGroup": int64("Group id of the process."),
        "runAsNonRoot": boolean("Whether it must not be root."),
        "runAsUser": int64("User id of the process."),
        "seLinuxOptions": SELINUX,
        "seccompProfile": PROFILE,
        "windowsOptions": WINDOWS,
    },
)

ENV = keyed("name", ENV_VAR, "Environment variables.")
VOLUME_MOUNTS = keyed("mountPath", VOLUME_MOUNT, "Volumes mounted into the container.")

_CONTAINER_FIELDS: dict[str, Schema] = {
    "name": string("Name of the container, unique in the Pod."),
    "image": string("Image to run."),
    "command": strings("Entry point; the image's when unset."),
    "args": strings("Arguments of the entry point."),
    "workingDir": string("Folder to start in."),
    "ports": merged(
        list_map(("containerPort", "protocol"), CONTAINER_PORT, "Ports that it serves."),
        "containerPort",
    ),
    "env": ENV,
    "envFrom": atomic(ENV_FROM, "Objects whose keys become variables."),
    "resources": RESOURCES,
    "resizePolicy": atomic(
        obj(
            "",
            {"resourceName": string(), "restartPolicy": string()},
            ("resourceName", "restartPolicy"),
        )
    ),
    "restartPolicy": string("Always makes an init container a sidecar."),
    "restartPolicyRules": atomic(
        obj(
            "When a container is restarted, by exit code.",
            {
                "action": string(),
                "exitCodes": obj(
                    "",
                    {
                        "operator": string(),
                        "values": {
                            "type": "array",
                            "items": int32(),
                            "x-kubernetes-list-type": "set",
                        },
                    },
                    ("operator",),
                ),
            },
            ("action",),
        )
    ),
    "volumeMounts": VOLUME_MOUNTS,
    "volumeDevices": keyed(
        "devicePath",
        obj("", {"devicePath": string(), "name": string()}, ("devicePath", "name")),
        "Raw devices of the container.",
    ),
    "livenessProbe": described(PROBE, "Restarts the container when it fails."),
    "readinessProbe": described(PROBE, "Says whether the container is ready."),
    "startupProbe": described(PROBE, "Holds the other probes until it succeeds."),
    "lifecycle": LIFECYCLE,
    "terminationMessagePath": string("File with the last words of the container."),
    "terminationMessagePolicy": string("File or FallbackToLogsOnError."),
    "imagePullPolicy": string("Always, IfNotPresent or Never."),
    "securityContext": SECURITY_CONTEXT,
    "stdin": boolean(),
    "stdinOnce": boolean(),
    "tty": boolean(),
}

CONTAINER = obj("One container of the Pod.", _CONTAINER_FIELDS, ("name",))
EPHEMERAL_CONTAINER = obj(
    "A container added to a running Pod to look into it.",
    {**_CONTAINER_FIELDS, "targetContainerName": string()},
    ("name",),
)

CONTAINER_STATE = obj(
    "Exactly one of waiting, running and terminated.",
    {
        "waiting": obj("Not started yet.", {"reason": string(), "message": string()}),
        "running": obj("Running.", {"startedAt": time()}),
        "terminated": obj(
            "Ended.",
            {
                "exitCode": int32("Exit code of the process.", default=0),
                "signal": int32("Signal that ended it."),
                "reason": string("Why, in one word."),
                "message": string("Why, in a sentence, or the last words."),
                "startedAt": time(),
                "finishedAt": time(),
                "containerID": string(),
            },
        ),
    },
)

CONTAINER_STATUS = obj(
    "State of one container.",
    {
        "name": string("Name of the container."),
        "state": CONTAINER_STATE,
        "lastState": described(CONTAINER_STATE, "How the run before ended."),
        "ready": boolean("Whether its readiness probe holds.", default=False),
        "started": boolean("Whether its startup probe holds."),
        "restartCount": int32("How often it was restarted.", default=0),
        "image": string("Image that it runs.", default=""),
        "imageID": string("Digest of the image.", default=""),
        "containerID": string("Identity of the run."),
        "allocatedResources": quantity_map(),
        "allocatedResourcesStatus": keyed(
            "name",
            obj(
                "",
                {
                    "name": string(),
                    "resources": list_map(
                        ("resourceID",),
                        obj("", {"resourceID": string(), "health": string()}, ("resourceID",)),
                    ),
                },
                ("name",),
            ),
        ),
        "resources": RESOURCES,
        "stopSignal": string(),
        "user": obj(
            "",
            {
                "linux": obj(
                    "",
                    {"gid": int64(), "supplementalGroups": atomic(int64()), "uid": int64()},
                    ("gid", "uid"),
                )
            },
        ),
        "volumeMounts": keyed(
            "mountPath",
            obj(
                "",
                {
                    "mountPath": string(),
                    "name": string(),
                    "readOnly": boolean(),
                    "recursiveReadOnly": string(),
                    "volumeStatus": obj("", {"image": obj("", {"imageRef": string()})}),
                },
                ("mountPath", "name"),
            ),
        ),
    },
    ("name",),
)
