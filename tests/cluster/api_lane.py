"""The API lane: a real control plane without nodes, on loopback, in a folder of its own.

etcd, kube-apiserver and, as a test needs them, controller-manager, scheduler and the JobSet
controller with its webhooks. Nobody but the test run can reach it: every port asks for a token.
"""

from __future__ import annotations

import json
import secrets
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster.builds import module_folder
from tests.cluster.machine import Tunnel
from tests.cluster.pki import Authority
from tests.cluster.processes import (
    READY_S,
    LaneFailure,
    find_free_ports,
    require_server,
    running,
    stop,
    wait_ready,
)
from trainwright.api.crds import build_all_crds
from trainwright.base.objects import is_condition_true
from trainwright.machinery.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.cluster.machine import Machine
    from trainwright.base.objects import Object

ISSUER = "https://kubernetes.default.svc.cluster.local"
ADMIN_GROUP = "system:masters"
NODES = ("node1", "node2")
FIRST_SERVICE_ADDRESS = "10.96.0.1"
"""Of the Service `kubernetes`."""
COMMAND_LIMIT_S = 60


@dataclass
class ApiLane:
    """A running control plane, and how clients reach it."""

    folder: Path
    port: int
    etcd_port: int
    token: str
    """Of a user with every right."""
    authority: Authority
    """Signs what webhooks serve."""
    stack: ExitStack
    machine: Machine | None = None
    """Where the servers run; None means here."""
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    commands: dict[str, Sequence[str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> Path:
        """What to trust the API server by."""
        return self.authority.file

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of the admin."""
        return self.folder / "kubeconfig"

    @property
    def connection(self) -> Connection:
        """For our own client."""
        return Connection(server=self.url, ca_file=self.ca_file, token=self.token)

    def find_ports(self, count: int) -> list[int]:
        """Free ports where the servers run, that this side reaches at its own loopback."""
        ports = find_free_ports(count)
        if self.machine is not None:
            for port in ports:
                self.stack.callback(Tunnel(self.machine, port).close)
        return ports

    def log(self, name: str) -> Path:
        """What a server says."""
        return self.folder / f"{name}.log"

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a server that ends with the lane; with its former arguments, when none are given."""
        binary = require_server(name)
        self.commands[name] = arguments or self.commands[name]
        machine = self.machine
        process = self.stack.enter_context(
            running(
                [*(machine.enter if machine else ()), str(binary), *self.commands[name]],
                self.log(name),
                {
                    "PATH": f"{binary.parent}:/usr/sbin:/usr/bin:/sbin:/bin",
                    "HOME": str(self.folder),
                    "KUBECONFIG": str(self.kubeconfig),
                },
                before=machine.join if machine else None,
            )
        )
        self.servers[name] = process
        return process

    def stop(self, name: str) -> None:
        """End one server."""
        stop(self.servers.pop(name))

    def wait_api(self) -> None:
        """Return once the API server is ready."""
        name = "kube-apiserver"
        wait_ready(
            lambda: self.probe(f"{self.url}/readyz"), self.servers[name], self.log(name), name
        )

    def probe(self, url: str) -> bool:
        """Whether a health endpoint says ok."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # only asks whether somebody is there
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Output of kubectl; the test fails when kubectl does."""
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin,
            text=True,
            capture_output=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder)},
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def apply(self, *objects: Object) -> None:
        """Apply objects server-side."""
        text = yaml.safe_dump_all(objects)
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def get(self, kind: str, name: str = "", *more: str) -> Any:
        """An object or list."""
        words = [kind, *([name] if name else []), *more]
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def node_token(self, name: str) -> str:
        """What a node of that name proves itself by."""
        return f"{self.token}-{name}"

    def write_kubeconfig(self, path: Path, token: str, host: str = "127.0.0.1") -> None:
        """A kubeconfig for the user of a token."""
        server = f"https://{host}:{self.port}"
        cluster = {"server": server, "certificate-authority": str(self.ca_file)}
        config: Mapping[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lane", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "lane", "context": {"cluster": "lane", "user": "user"}}],
            "current-context": "lane",
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))

    def start_kwok(self) -> None:
        """A node that pretends: Pods bound to it run, and those of Jobs end with success."""
        (port,) = self.find_ports(1)
        process = self.start(
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            "--manage-all-nodes=true",
            f"--server-address=127.0.0.1:{port}",
        )
        ready = f"http://127.0.0.1:{port}/healthz"
        wait_ready(lambda: self.probe(ready), process, self.log("kwok"), "kwok")
        room = {"cpu": "1000", "memory": "1000Gi", "pods": "10000"}
        self.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "pretends"}})
        self.kubectl(
            *("patch", "node", "pretends", "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": {"allocatable": room, "capacity": room}})),
        )

    def install_crds(self, crds: Sequence[Object]) -> None:
        """Apply CRDs and wait until they are served."""
        self.apply(*crds)
        wanted = {crd["metadata"]["name"] for crd in crds}
        deadline = time.monotonic() + READY_S
        while not wanted <= self._established_crds():
            if time.monotonic() > deadline:
                raise LaneFailure(f"not served in time: {wanted - self._established_crds()}")
            time.sleep(0.1)

    def _established_crds(self) -> set[str]:
        return {
            crd["metadata"]["name"]
            for crd in self.get("crds")["items"]
            if is_condition_true(crd, "Established")
        }


@contextmanager
def make_api_lane(folder: Path, *servers: str, machine: Machine | None = None) -> Iterator[ApiLane]:
    """A control plane with our CRDs.

    Args:
        folder: an empty folder for its data and logs.
        servers: what runs besides etcd and the API server: `kube-controller-manager`,
            `kube-scheduler`, `jobset`.
        machine: where the servers run; None means here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        lane = ApiLane(
            folder=folder,
            port=0,
            etcd_port=0,
            token=secrets.token_hex(24),
            authority=Authority(folder / "pki"),
            stack=stack,
            machine=machine,
        )
        lane.etcd_port, etcd_peer_port, lane.port = lane.find_ports(3)
        _write_files(lane)
        _start_etcd(lane, etcd_peer_port)
        lane.start("kube-apiserver", *_list_apiserver_flags(lane))
        lane.wait_api()
        lane.install_crds([crd for crd in build_all_crds() if _is_ours(crd)])
        for name in servers:
            _STARTS[name](lane)
        yield lane


def _is_ours(crd: Object) -> bool:
    return bool(crd["spec"]["group"] == "trainer.kubeflow.org")


def _write_files(lane: ApiLane) -> None:
    rows = [f'{lane.token},admin,1,"{ADMIN_GROUP}"']
    rows += [f"{lane.node_token(name)},system:node:{name},{name},system:nodes" for name in NODES]
    (lane.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
    lane.authority.write_key_pair(lane.folder / "service-accounts")
    names = ["kubernetes.default.svc", FIRST_SERVICE_ADDRESS]
    names += [lane.machine.address] if lane.machine else []
    lane.authority.write_server(lane.folder / "apiserver", *names)
    lane.write_kubeconfig(lane.kubeconfig, lane.token)


def _start_etcd(lane: ApiLane, peer_port: int) -> None:
    url, peer = f"http://127.0.0.1:{lane.etcd_port}", f"http://127.0.0.1:{peer_port}"
    process = lane.start(
        "etcd",
        f"--data-dir={lane.folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )
    wait_ready(lambda: lane.probe(f"{url}/health"), process, lane.log("etcd"), "etcd")


def _list_apiserver_flags(lane: ApiLane) -> list[str]:
    keys, certificates = lane.folder / "service-accounts", lane.folder / "apiserver"
    where = ["--bind-address=127.0.0.1"]
    if lane.machine is not None:
        where = ["--bind-address=0.0.0.0", f"--advertise-address={lane.machine.address}"]
    return [
        f"--etcd-servers=http://127.0.0.1:{lane.etcd_port}",
        *where,
        f"--secure-port={lane.port}",
        f"--tls-cert-file={certificates / 'tls.crt'}",
        f"--tls-private-key-file={certificates / 'tls.key'}",
        f"--token-auth-file={lane.folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={keys / 'key.pub'}",
        f"--service-account-signing-key-file={keys / 'key.pem'}",
        f"--service-account-issuer={ISSUER}",
        f"--api-audiences={ISSUER}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
    ]


def _start_controller_manager(lane: ApiLane) -> None:
    (port,) = lane.find_ports(1)
    process = lane.start(
        "kube-controller-manager",
        f"--kubeconfig={lane.kubeconfig}",
        "--leader-elect=false",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={lane.folder}",
        f"--service-account-private-key-file={lane.folder / 'service-accounts' / 'key.pem'}",
        f"--root-ca-file={lane.ca_file}",
        "--concurrent-job-syncs=20",
        "--concurrent-gc-syncs=20",
    )
    name = "kube-controller-manager"
    wait_ready(
        lambda: lane.probe(f"https://127.0.0.1:{port}/healthz"), process, lane.log(name), name
    )


def _start_scheduler(lane: ApiLane) -> None:
    (port,) = lane.find_ports(1)
    process = lane.start(
        "kube-scheduler",
        f"--kubeconfig={lane.kubeconfig}",
        "--leader-elect=false",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={lane.folder}",
    )
    name = "kube-scheduler"
    wait_ready(
        lambda: lane.probe(f"https://127.0.0.1:{port}/healthz"), process, lane.log(name), name
    )


def _start_jobset(lane: ApiLane) -> None:
    """CRD, controller, webhooks, in this order: each refuses to work without the one before."""
    webhook_port, health_port = lane.find_ports(2)
    certificates = lane.authority.write_server(lane.folder / "jobset-webhook")
    manifests = _render_module(lane, "jobset")
    config: Mapping[str, Any] = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": "127.0.0.1", "port": webhook_port, "certDir": str(certificates)},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
    }
    path = lane.folder / "jobset.yaml"
    path.write_text(yaml.safe_dump(config))
    lane.install_crds([o for o in manifests if o["kind"] == "CustomResourceDefinition"])
    lane.apply(*(o for o in manifests if o["kind"] == "Namespace"))
    process = lane.start("jobset", f"--config={path}")
    ready = f"http://127.0.0.1:{health_port}/readyz"
    wait_ready(lambda: lane.probe(ready), process, lane.log("jobset"), "jobset")
    webhooks = [o for o in manifests if o["kind"].endswith("WebhookConfiguration")]
    for configuration in webhooks:
        for webhook in configuration["webhooks"]:
            point_at(webhook["clientConfig"], webhook_port, lane.authority)
    lane.apply(*webhooks)
    # The controller says that it is ready before its webhooks know their paths.
    wait_ready(lambda: _is_jobset_judged(lane), process, lane.log("jobset"), "jobset's webhooks")


def _is_jobset_judged(lane: ApiLane) -> bool:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {"name": "j", "template": {"spec": {"template": {"spec": pod}}}}
    probe = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {"replicatedJobs": [job]},
    }
    try:
        text = lane.kubectl(
            "create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(probe)
        )
    except AssertionError:
        return False
    return "enableDNSHostnames" in text


def point_at(client_config: dict[str, Any], port: int, authority: Authority) -> None:
    """Turn a webhook's Service into a URL of this machine."""
    service = client_config.pop("service", {})
    client_config["url"] = f"https://127.0.0.1:{port}{service.get('path', '/')}"
    client_config["caBundle"] = authority.bundle


def _render_module(lane: ApiLane, server: str) -> list[Object]:
    """A project's own manifests, rendered from its module as its users install them."""
    # A kustomization may not be read from the module cache: the @ in its path means a revision.
    copy = lane.folder / f"{server}-config"
    subprocess.run(
        ["cp", "-r", "--no-preserve=mode", str(module_folder(server) / "config"), str(copy)],
        check=True,
    )
    return list(yaml.safe_load_all(lane.kubectl("kustomize", str(copy / "default"))))


_STARTS = {
    "kube-controller-manager": _start_controller_manager,
    "kube-scheduler": _start_scheduler,
    "jobset": _start_jobset,
}
