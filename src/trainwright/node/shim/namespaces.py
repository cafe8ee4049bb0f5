"""Namespaces of one container: its mounts, hosts file, host name and network."""

# ruff: noqa: D102, D103 - a program: nobody calls these from outside
from __future__ import annotations

import os
import stat
import sys

from trainwright.node.shim.processes import load_libc, read_boot_id, read_start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AT_FDCWD, OPEN_TREE_CLONE, AT_RECURSIVE, MOVE_EMPTY = -100, 1, 0x8000, 4
SET_FLAGS = 0x8914
PIVOT_ROOT = {"aarch64": 41, "riscv64": 41, "x86_64": 155}.get(os.uname().machine, 155)


class Namespaces:
    """Namespaces of one container: its mounts, hosts file and host name."""

    NEWNS, NEWUTS, NEWUSER, NEWNET = 0x00020000, 0x04000000, 0x10000000, 0x40000000
    BIND, REC, PRIVATE, REMOUNT, RDONLY = 0x1000, 0x4000, 0x40000, 0x20, 0x1

    def __init__(self, libc: Any) -> None:
        self.libc = libc
        self.views: set[int] = set()

    def call(self, name: str, *args: Any) -> None:
        import ctypes

        if getattr(self.libc, name)(*args) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")

    def mount(
        self, source: str, target: str, flags: int, kind: str = "", options: str = ""
    ) -> None:
        import ctypes

        texts = [t.encode() if t else None for t in (source, target, kind)]
        self.call("mount", *texts, ctypes.c_ulong(flags), options.encode() if options else None)

    def enter(self, spec: dict[str, Any]) -> None:
        """Bind `spec["mounts"]` (source, target, readOnly) over a view of the root file system."""
        if spec.get("network"):
            self.call("unshare", self.NEWNS | self.NEWUTS)
        else:
            self.leave(self.NEWNS | self.NEWUTS)
        self.mount("none", "/", self.REC | self.PRIVATE)
        entries = spec["mounts"]
        # All sources first, as trees of their own: a mount may hide where the next source lies.
        trees = [self.clone_tree(entry["source"]) for entry in entries]
        for tree, entry in zip(trees, entries, strict=True):
            if not any(is_below(entry["target"], other["target"]) for other in entries):
                is_folder = stat.S_ISDIR(os.fstat(tree).st_mode)
                self.ensure_target(entry["target"], is_folder, spec["stage"])
        for tree, entry in zip(trees, entries, strict=True):
            if not os.path.exists(entry["target"]):
                os.makedirs(entry["target"])
            self.attach_tree(tree, entry["target"])
            if entry.get("readOnly"):
                self.make_read_only(entry["target"])
        name = spec.get("hostname", "").encode()
        if name:
            self.call("sethostname", name, len(name))

    def leave(self, flags: int) -> None:
        """Enter new namespaces; without root, in a user namespace that makes them ours."""
        uid, gid = os.getuid(), os.getgid()
        if uid == 0:
            self.call("unshare", flags)
            return
        self.call("unshare", flags | self.NEWUSER)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)

    def follow_mounts(self, pid: int, spec: dict[str, Any]) -> None:
        """Enter the mounts and host name of a process that `enter` has separated."""
        handles = [(kind, open_namespace(pid, kind)) for kind in ("user", "mnt", "uts")]
        for kind, handle in handles:
            # The user namespace of a job's network is the caller's own already.
            if kind != "user" or not (os.getuid() == 0 or spec.get("network")):
                self.call("setns", handle, 0)
            os.close(handle)

    def join_network(self, path: str) -> None:
        """Enter the job's network: that of a shim that lives, else a new one.

        The file at `path` names the shims in it. Nobody else holds it: it ends with the last one.
        """
        import fcntl

        boot = read_boot_id()
        with open(path, "a+", encoding="ascii") as members:
            fcntl.flock(members, fcntl.LOCK_EX)
            members.seek(0)
            if not any(self.follow(line, boot) for line in members):
                self.leave(self.NEWNET)
                self.bring_up_loopback()
                members.truncate(0)
            pid = os.getpid()
            members.write(f"{pid} {read_start_time(pid)} {boot}\n")

    def follow(self, member: str, boot_now: str) -> bool:
        """Enter the network of a process, and its user namespace; False when it is gone."""
        pid, start_ticks, boot = member.split()
        if boot != boot_now or str(read_start_time(int(pid))) != start_ticks:
            return False
        try:
            network, user = open_namespace(int(pid), "net"), open_namespace(int(pid), "user")
        except FileNotFoundError:
            return False
        if os.getuid() != 0:
            self.call("setns", user, self.NEWUSER)
        self.call("setns", network, self.NEWNET)
        os.close(network)
        os.close(user)
        return True

    def bring_up_loopback(self) -> None:
        import fcntl

        with open(self.libc.socket(2, 2, 0), "rb", buffering=0) as handle:
            up_and_running = (0x41).to_bytes(2, sys.byteorder)
            fcntl.ioctl(handle, SET_FLAGS, b"lo".ljust(16, b"\0") + up_and_running + bytes(22))

    def clone_tree(self, source: str) -> int:
        import ctypes

        flags = OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC
        tree: int = self.libc.syscall(
            ctypes.c_long(428), AT_FDCWD, source.encode(), ctypes.c_uint(flags)
        )
        if tree < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"open_tree: {os.strerror(number)}: {source}")
        return tree

    def attach_tree(self, tree: int, target: str) -> None:
        import ctypes

        self.call("syscall", ctypes.c_long(429), tree, b"", AT_FDCWD, target.encode(), MOVE_EMPTY)

    def make_read_only(self, target: str) -> None:
        try:
            self.mount("none", target, self.BIND | self.REMOUNT | self.RDONLY)
        except OSError:
            # Flags that the source has locked; the pod's own folder may as well be writable.
            return

    def ensure_target(self, target: str, is_folder: bool, stage: str) -> None:
        """Make a mount point, on a view of the nearest folder that exists: the machine stays as it is."""
        if os.path.exists(target):
            return
        parent = os.path.dirname(target)
        while not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        if os.stat(parent).st_dev not in self.views:
            self.lay_view(os.path.realpath(parent), stage)
            self.views.add(os.stat(parent).st_dev)
        os.makedirs(target if is_folder else os.path.dirname(target), mode=0o755, exist_ok=True)
        if not is_folder:
            with open(target, "w", encoding="ascii"):
                pass

    def lay_view(self, folder: str, stage: str) -> None:
        """Replace `folder` by a tmpfs that shows every entry of it (links copied, rest bound)."""
        import ctypes

        top = stage
        self.mount("tmpfs", top, 0, "tmpfs", "mode=755")
        for name in os.listdir(folder):
            source, target = os.path.join(folder, name), os.path.join(top, name)
            if os.path.islink(source):
                os.symlink(os.readlink(source), target)
                continue
            try:
                if os.path.isdir(source):
                    os.mkdir(target)
                else:
                    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
                self.mount(source, target, self.BIND | self.REC)
            except OSError:
                # An entry that may not be bound is missing from the view.
                continue
        if folder != "/":
            self.mount(top, folder, self.BIND | self.REC)
            return
        old = os.path.join(top, ".old-root")
        os.mkdir(old)
        self.call("syscall", ctypes.c_long(PIVOT_ROOT), top.encode(), old.encode())
        os.chdir("/")
        self.mount_detach("/.old-root")
        os.rmdir("/.old-root")

    def mount_detach(self, target: str) -> None:
        self.call("umount2", target.encode(), 2)


def open_namespace(pid: int, kind: str) -> int:
    return os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)


def is_below(path: str, other: str) -> bool:
    return path.startswith(other.rstrip("/") + "/")


def probe(stage: str, network: str) -> int:
    """Whether mounts of a container's own are allowed here, and a network: exit 0, or 1 saying why."""
    namespaces = Namespaces(load_libc())
    source = os.path.join(stage, "source")
    os.makedirs(source, exist_ok=True)
    view = os.path.join(stage, "view")
    os.makedirs(view, exist_ok=True)
    targets = ("/trainwright-probe/below", "/trainwright-other", "/etc/trainwright/x")
    try:
        if network:
            namespaces.join_network(network)
        namespaces.enter(
            {
                "network": network,
                "stage": view,
                "mounts": [{"source": source, "target": target} for target in targets],
                "hostname": "probe",
            }
        )
        for target in targets:
            with open(os.path.join(target, "file"), "w", encoding="ascii") as file:
                file.write("x")
    except (OSError, AttributeError) as error:
        sys.stderr.write(str(error))
        return 1
    return 0 if os.path.exists("/usr") else 1
