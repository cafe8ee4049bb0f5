"""Control groups (version 2), where this user may make some: they hold limits and end whole trees."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
PERIOD_US = 100_000


@dataclass(frozen=True, slots=True)
class CgroupRoot:
    """A group below which each container gets its own."""

    folder: Path
    controllers: frozenset[str]

    def ensure_group(self, name: str, *, memory_bytes: int = 0, cpu_cores: float = 0.0) -> Path:
        """Make a container's group with its limits; a limit whose controller is missing is skipped."""
        group = self.folder / name
        group.mkdir(exist_ok=True)
        if memory_bytes and "memory" in self.controllers:
            (group / "memory.max").write_text(str(memory_bytes))
            for file, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                with contextlib.suppress(OSError):
                    (group / file).write_text(value)
        if cpu_cores and "cpu" in self.controllers:
            (group / "cpu.max").write_text(f"{max(1000, int(cpu_cores * PERIOD_US))} {PERIOD_US}")
        return group


def find_own_group() -> str:
    """This process' group in the version 2 tree, such as `/user.slice`; empty when there is none."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line[3:] for line in lines if line.startswith("0::")), "")


def ensure_cgroup_root(name: str) -> CgroupRoot | None:
    """A group of ours beside this process' own, if the system lets us; None otherwise."""
    own = find_own_group().strip("/")
    for mount in MOUNTS:
        if not (mount / "cgroup.controllers").is_file():
            continue
        folder = mount / own / name
        try:
            folder.mkdir(exist_ok=True)
        except OSError:
            continue
        if (folder / "cgroup.kill").exists() and os.access(folder.parent / "cgroup.procs", os.W_OK):
            return CgroupRoot(folder, _enable_controllers(folder))
        with contextlib.suppress(OSError):
            folder.rmdir()
    return None


def _enable_controllers(folder: Path) -> frozenset[str]:
    enabled = set()
    for controller in ("memory", "cpu"):
        try:
            (folder / "cgroup.subtree_control").write_text(f"+{controller}")
        except OSError:
            continue
        enabled.add(controller)
    return frozenset(enabled)


def kill_group(group: Path) -> None:
    """SIGKILL everything in a group and remove it, as far as that is possible now."""
    with contextlib.suppress(OSError):
        (group / "cgroup.kill").write_text("1")
    with contextlib.suppress(OSError):
        group.rmdir()
