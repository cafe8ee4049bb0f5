"""This machine as a Node object."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from trainwright.api.kinds import NODE

if TYPE_CHECKING:
    from trainwright.base.objects import Object, ObjectView
    from trainwright.node.settings import NodeSettings


def build_node(capacity: ObjectView, settings: NodeSettings, now: str) -> Object:
    """The Node object of this machine."""
    system = platform.uname()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(system.machine, system.machine)
    labels = {
        "kubernetes.io/hostname": settings.node_name,
        "kubernetes.io/os": system.system.lower(),
        "kubernetes.io/arch": architecture,
    }
    conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "memory is sufficient"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "disk space is sufficient"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "process ids are sufficient"),
        ("Ready", "True", "KubeletReady", "pods run as processes of this machine"),
    ]
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {"name": settings.node_name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(capacity),
            "addresses": [
                {"type": "InternalIP", "address": settings.host_ip},
                {"type": "Hostname", "address": settings.node_name},
            ],
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
                for type_, status, reason, message in conditions
            ],
            "nodeInfo": {
                "architecture": architecture,
                "bootID": _read_line("/proc/sys/kernel/random/boot_id"),
                "containerRuntimeVersion": "trainwright://1",
                "kernelVersion": system.release,
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.0-trainwright",
                "machineID": _read_line("/etc/machine-id"),
                "operatingSystem": system.system.lower(),
                "osImage": f"{system.system} {system.release}",
                "systemUUID": "",
            },
        },
    }


def _read_line(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.readline().strip()
    except OSError:
        return ""
