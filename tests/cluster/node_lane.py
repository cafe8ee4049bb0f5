"""The node lane: the API lane's servers in a machine of their own, with a kubelet that runs containers.

Pods have images, control groups, a bridge network, cluster DNS and Services; nothing of it can be
reached from outside but the API server, through a port of this side's loopback.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster.api_lane import ApiLane, make_api_lane
from tests.cluster.images import PAUSE, build_image, make_busybox_root
from tests.cluster.machine import Machine, make_machine
from tests.cluster.processes import (
    READY_S,
    LaneFailure,
    require_program,
    require_server,
    running,
    wait_ready,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ADDRESS = "10.99.0.1"
PODS = "10.99.1.0/24"
POD_RANGE = "10.99.0.0/16"
DOMAIN = "cluster.local"
SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "trainwright.local/pause:1"
BUSYBOX_IMAGE = "trainwright.local/busybox:1"


@dataclass
class NodeLane:
    """A cluster with one node."""

    lane: ApiLane
    machine: Machine
    folder: Path
    images: dict[str, Path] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> Any:
        """Start a server in the machine."""
        return self.lane.start(name, *arguments)

    def import_image(self, archive: Path) -> None:
        """Give an image to the node's containerd."""
        self.machine.run(
            str(require_server("ctr")),
            f"--address={SOCKET}",
            "--namespace=k8s.io",
            "images",
            "import",
            str(archive),
        )

    def wait(self, kind: str, name: str, condition: str, *more: str) -> Mapping[str, Any]:
        """Wait for a condition of an object."""
        self.lane.kubectl("wait", f"--for={condition}", f"{kind}/{name}", "--timeout=60s", *more)
        found: Mapping[str, Any] = self.lane.get(kind, name, *more)
        return found


@contextmanager
def make_node_lane(folder: Path, *servers: str) -> Iterator[NodeLane]:
    """A cluster with one node and the images of `busybox`; `servers` as of `make_api_lane`."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in ("nft", "conntrack", "busybox"):
        require_program(program)
    with (
        make_machine(folder / "machine", "node1", ADDRESS) as machine,
        running(
            [*machine.enter, *_containerd_command(folder)],
            folder / "containerd.log",
            {
                "PATH": f"{require_server('containerd-shim-runc-v2').parent}:/usr/sbin:/usr/bin:/sbin:/bin"
            },
            before=machine.join,
        ) as containerd,
        make_api_lane(
            folder / "lane", "kube-controller-manager", "kube-scheduler", *servers, machine=machine
        ) as lane,
    ):
        node = NodeLane(lane, machine, folder)
        ready = folder / "machine" / "containerd" / "io.containerd.metadata.v1.bolt"
        wait_ready(ready.exists, containerd, folder / "containerd.log", "containerd")
        _start_dns(node)
        _start_proxy(node)
        _start_kubelet(node)
        root = make_busybox_root(folder / "busybox")
        for image, command in ((PAUSE_IMAGE, PAUSE), (BUSYBOX_IMAGE, ("sh",))):
            archive = folder / "image.tar"
            build_image(archive, image, root, command=command)
            node.import_image(archive)
        _wait_node(node)
        yield node


def _containerd_command(folder: Path) -> list[str]:
    networks = folder / "networks"
    networks.mkdir()
    bridge = {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": PODS}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    (networks / "10-bridge.conflist").write_text(json.dumps(bridge))
    runc = require_program("runc")
    config = folder / "containerd.toml"
    config.write_text(f"""
version = 3
root = "{folder / "machine" / "containerd"}"
state = "/run/containerd"
[grpc]
  address = "{SOCKET}"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{PAUSE_IMAGE}"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "{networks}"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
""")
    return [str(require_server("containerd")), f"--config={config}"]


def _start_kubelet(node: NodeLane) -> None:
    lane, name = node.lane, "node1"
    own = node.folder / "machine" / "kubelet"
    kubeconfig = node.folder / f"{name}.kubeconfig"
    lane.write_kubeconfig(kubeconfig, lane.node_token(name))
    config: Mapping[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "enforceNodeAllocatable": [],
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        # Nobody but this machine can reach it.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "clusterDNS": [ADDRESS],
        "clusterDomain": DOMAIN,
        "resolvConf": "/etc/resolv.conf",
        "podLogsDir": "/var/log/pods",
        "volumePluginDir": str(own / "volumeplugins"),
        "evictionHard": {
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "memory.available": "100Mi",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "registryPullQPS": 0,
        "serializeImagePulls": False,
    }
    path = node.folder / "kubelet.yaml"
    path.write_text(yaml.safe_dump(config))
    node.start(
        "kubelet",
        f"--config={path}",
        f"--kubeconfig={kubeconfig}",
        f"--root-dir={own}",
        f"--cert-dir={own / 'pki'}",
        f"--hostname-override={name}",
        f"--node-ip={ADDRESS}",
    )


def _start_dns(node: NodeLane) -> None:
    corefile = node.folder / "Corefile"
    # What nobody knows is answered at once, in a block of its own: a template would else come first.
    corefile.write_text(f"""
{DOMAIN}:53 10.in-addr.arpa:53 {{
  bind {ADDRESS}
  errors
  kubernetes {DOMAIN} 10.in-addr.arpa {{
    kubeconfig {node.lane.kubeconfig} lane
    pods insecure
    ttl 1
  }}
  reload 2s
}}
.:53 {{
  bind {ADDRESS}
  template ANY ANY . {{
    rcode NXDOMAIN
  }}
}}
""")
    node.start("coredns", "-conf", str(corefile))


def _start_proxy(node: NodeLane) -> None:
    config: Mapping[str, Any] = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "bindAddress": "127.0.0.1",
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "hostnameOverride": "node1",
        "clientConnection": {"kubeconfig": str(node.lane.kubeconfig)},
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    path = node.folder / "kube-proxy.yaml"
    path.write_text(yaml.safe_dump(config))
    node.start("kube-proxy", f"--config={path}")


def _wait_node(node: NodeLane) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        for found in node.lane.get("nodes")["items"]:
            conditions = {c["type"]: c["status"] for c in found["status"].get("conditions", [])}
            if conditions.get("Ready") == "True":
                return
        time.sleep(0.2)
    said = node.lane.log("kubelet").read_text(errors="replace")[-3000:]
    raise LaneFailure(f"the node did not get ready; the kubelet said:\n{said}")
