"""Builds the real servers of a cluster, once, into a cache outside the tree.

Run as a program (`scripts/servers`); standard library only, since it comes before any environment.
A build is kept under the hash of what it was made of: the pinned modules and the command line.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).with_name("servers")
KUBERNETES_VERSION = "v1.36.3"
GROUPS = ("api", "tools", "more", "nodes")


@dataclass(frozen=True)
class Server:
    """One binary: the folder with its go.mod, its package, and the lane that needs it."""

    name: str
    module: str
    package: str
    group: str
    tags: str = ""

    @property
    def flags(self) -> list[str]:
        """Flags of `go build`."""
        stamp = "-s -w"
        if self.module == "kubernetes":
            stamp += f" -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}"
        return ["-trimpath", f"-ldflags={stamp}", *([f"-tags={self.tags}"] if self.tags else [])]

    @property
    def path(self) -> Path:
        """Where the binary is once it is built."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((MODULES / self.module / name).read_bytes())
        digest.update(" ".join([self.package, *self.flags]).encode())
        return cache_folder() / f"{self.name}-{digest.hexdigest()[:16]}" / self.name


def _kubernetes(name: str, group: str) -> Server:
    return Server(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", group)


def _containerd(name: str) -> Server:
    package = f"github.com/containerd/containerd/v2/cmd/{name}"
    return Server(name, "containerd", package, "nodes", "no_btrfs,no_devmapper,no_zfs")


SERVERS = (
    Server("etcd", "etcd", "go.etcd.io/etcd/server/v3", "api"),
    _kubernetes("kube-apiserver", "api"),
    _kubernetes("kube-controller-manager", "api"),
    _kubernetes("kube-scheduler", "api"),
    Server("jobset", "jobset", "sigs.k8s.io/jobset", "api"),
    Server("helm", "helm", "helm.sh/helm/v3/cmd/helm", "tools"),
    Server("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "more"),
    Server("lws", "lws", "sigs.k8s.io/lws/cmd", "more"),
    Server("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue", "more"),
    _kubernetes("kubelet", "nodes"),
    _kubernetes("kube-proxy", "nodes"),
    _containerd("containerd"),
    _containerd("containerd-shim-runc-v2"),
    _containerd("ctr"),
    Server("coredns", "coredns", "github.com/coredns/coredns", "nodes"),
)
"""In the order of building."""


def cache_folder() -> Path:
    """The cache: `TRAINWRIGHT_SERVERS`, else a folder of the user."""
    chosen = os.environ.get("TRAINWRIGHT_SERVERS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "trainwright" / "servers"


def find_server(name: str) -> Path | None:
    """The binary of that name, or None when it is not built."""
    path = next(server.path for server in SERVERS if server.name == name)
    return path if path.exists() else None


def module_folder(server: str) -> Path:
    """The source folder of the module that a server is built from: its CRDs lie there."""
    found = next(s for s in SERVERS if s.name == server)
    module = found.package.split("/cmd")[0]
    listed = _go(found, "list", "-m", "-f", "{{.Dir}}", module)
    return Path(listed.stdout.strip())


def build(server: Server, timeout_s: float | None) -> bool:
    """Build one binary; False when it could not be built, or not in time."""
    folder = server.path.parent
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        _go(server, "build", *server.flags, "-o", str(draft / server.name), server.package,
            timeout_s=timeout_s)  # fmt: skip
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    except subprocess.TimeoutExpired:
        return False
    except subprocess.CalledProcessError as error:
        print(f"{server.name} cannot be built: go ended with {error.returncode}", flush=True)
        return False
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _go(
    server: Server, *arguments: str, timeout_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["go", *arguments],
        cwd=MODULES / server.module,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        timeout=timeout_s,
    )


def main() -> int:
    """Build what is missing; the exit code is 0 when everything asked for is there."""
    parser = argparse.ArgumentParser(
        prog="scripts/servers", description="Build the servers that cluster tests run against."
    )
    parser.add_argument("--only", choices=GROUPS, action="append", help="a lane; default: all")
    parser.add_argument("--budget", type=float, help="seconds; what is left then is left out")
    options = parser.parse_args()
    wanted = [s for s in SERVERS if s.group in (options.only or GROUPS)]
    missing = [server for server in wanted if not server.path.exists()]
    if not missing:
        print(f"{len(wanted)} servers are built, in {cache_folder()}")
        return 0
    if shutil.which("go") is None:
        names = ", ".join(server.name for server in missing)
        print(f"error: {names}: not built yet, and there is no Go to build them with; "
              "install Go 1.26 or newer and try again", file=sys.stderr)  # fmt: skip
        return 1
    start = time.monotonic()
    left_out: list[str] = []
    for server in missing:
        left_s = options.budget and options.budget - (time.monotonic() - start)
        began = time.monotonic()
        print(f"building {server.name} ...", flush=True)
        if (left_s is not None and left_s <= 0) or not build(server, left_s):
            left_out.append(server.name)
            continue
        print(f"built {server.name} in {time.monotonic() - began:.0f} s", flush=True)
    if left_out:
        print(f"left out: {', '.join(left_out)}; tests that need them are skipped")
    return 0 if not left_out else 3


if __name__ == "__main__":
    sys.exit(main())
