"""One container's keeper: a program of its own, run as `python -I -S shim.py FOLDER`.

Standard library only and small, because one lives as long as each container. It starts the process
that FOLDER/spec.json describes, writes its output to FOLDER/log, takes commands from the pipe
FOLDER/control, and leaves no process behind. It needs nobody: the plane may go and come back.

Files it writes, each by rename: started.json (pid, start time, boot id) and exit.json.
Commands of protocol 1, one a line: `signal NUMBER`, `stop NUMBER GRACE_S` (the signal to the process, after the
grace SIGKILL to the whole tree).
"""

# ruff: noqa: D101, D102, D103 - a program: nobody calls these from outside
from __future__ import annotations

import json
import os
import select
import signal
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = 1
"""Told in started.json: a later plane finds keepers of this version and must know what they know."""
CHUNK_BYTES = 65536
RECORD_BYTES = 4096
RECORDS = ("started.json", "exit.json")
LEAST_ROOM_BYTES = 4 * 1024 * 1024
"""What a log leaves of its disk, to records and to the store: a log may not take the last room."""
LEAST_ROOM_SHARE = 8
"""On a small disk: an eighth of it."""
MEMORY_PERIOD_S = 0.25
OPEN_LINE_S = 0.1
"""Programs without a buffer write a line in pieces: so long its end is waited for."""
LONGEST_OPEN_LINE = 16384
START_ERROR = 128


def reserve_records(folder: str) -> None:
    """Take the room of all records now, so that they can be written when the disk is full.

    Whoever starts the shim calls this: a process without its records is lost, so that none may
    begin where there is no room for them.
    """
    for name in RECORDS:
        with open(os.path.join(folder, name + ".new"), "wb") as file:
            file.write(b" " * RECORD_BYTES)


def has_room(path: str) -> bool:
    """Whether the disk of a log has room for more of it."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return True
    least = min(LEAST_ROOM_BYTES, disk.f_blocks * disk.f_frsize // LEAST_ROOM_SHARE)
    return disk.f_bavail * disk.f_frsize >= least


def write_record(folder: str, name: str, record: dict[str, Any]) -> None:
    path = os.path.join(folder, name)
    descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        # Over what was reserved; blanks after the JSON do no harm.
        file.write(json.dumps(record).encode().ljust(os.fstat(descriptor).st_size))
    os.rename(path + ".new", path)


def render_now() -> str:
    nanoseconds = time.time_ns()
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:09d}Z"


class Log:
    """The output file: `TIME STREAM F|P TEXT` a line, P for a piece of a line still open."""

    def __init__(self, path: str, max_bytes: int, keep: int) -> None:
        self.path, self.max_bytes, self.keep = path, max_bytes, keep
        self.open_line, self.open_since, self.flush_at = b"", "", 0.0
        # Output is lost while there is no room; how much was written since the last look at it.
        self.lost_bytes, self.unseen_bytes = 0, CHUNK_BYTES
        self.open()

    def open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self.fd = os.open(self.path, flags, 0o600)
        self.size = os.fstat(self.fd).st_size

    def rotate(self) -> None:
        oldest = f"{self.path}.{self.keep - 1}" if self.keep > 1 else self.path
        if os.path.exists(oldest):
            # Told to who reads the log: it does not begin at the beginning any more.
            os.close(os.open(self.path + ".cut", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for number in range(self.keep - 1, 0, -1):
            older = f"{self.path}.{number}"
            newer = f"{self.path}.{number - 1}" if number > 1 else self.path
            if os.path.exists(newer):
                os.rename(newer, older)
        os.close(self.fd)
        if self.keep <= 1:
            os.unlink(self.path)
        self.open()

    def write(self, stream: str, data: bytes) -> None:
        """Write lines; what is left of an open one waits a moment for its end."""
        if not self.open_line:
            self.open_since, self.flush_at = render_now(), time.monotonic() + OPEN_LINE_S
        first, *others = (self.open_line + data).split(b"\n")
        head = f"{self.open_since} {stream} F ".encode()
        if others:
            *others, self.open_line = others
            self.open_since, self.flush_at = render_now(), time.monotonic() + OPEN_LINE_S
            later = f"{self.open_since} {stream} F ".encode()
            self.append(b"".join([head + first + b"\n", *(later + o + b"\n" for o in others)]))
        else:
            self.open_line = first
        if len(self.open_line) >= LONGEST_OPEN_LINE:
            self.flush()

    def flush(self) -> None:
        """Write what there is of an open line."""
        if self.open_line:
            self.append(f"{self.open_since} stdout P ".encode() + self.open_line + b"\n")
            self.open_line = b""

    def append(self, text: bytes) -> None:
        self.unseen_bytes += len(text)
        if self.lost_bytes or self.unseen_bytes >= CHUNK_BYTES:
            self.unseen_bytes = 0
            if not has_room(self.path):
                # A full disk must not block the user's process: output is lost until there is room.
                self.lost_bytes += len(text)
                return
        if self.lost_bytes:
            text = self.render_loss() + text
            self.lost_bytes = 0
        try:
            if self.size and self.size + len(text) > self.max_bytes:
                self.rotate()
            while text:
                written = os.write(self.fd, text)
                self.size += written
                text = text[written:]
        except OSError:
            self.lost_bytes += len(text)

    def render_loss(self) -> bytes:
        # A line of its own, after a row that may have been cut.
        note = f"trainwright: the disk was full, about {self.lost_bytes} bytes of output are lost"
        return f"\n{render_now()} stderr F {note}\n".encode()


def read_processes() -> dict[int, int]:
    """Every process as {pid: parent pid}; empty where the system does not say."""
    parents = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return read_processes_by_ps()
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            parents[int(name)] = int(fields[1])
    return parents


def read_processes_by_ps() -> dict[int, int]:
    with os.popen("ps -axo pid=,ppid=") as table:  # noqa: S605 - fixed text
        rows = [line.split() for line in table]
    return {int(row[0]): int(row[1]) for row in rows if len(row) == 2}


def find_descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in read_processes().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def read_start_time(pid: int) -> int:
    """Clock ticks from boot to the process' start: with the pid it names one process for good."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == b"Z" else int(fields[19])


def read_boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_private_bytes(pids: list[int]) -> int:
    """Memory of the processes without what they share; an upper bound when pages are copy-on-write."""
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                fields = file.read().split()
        except OSError:
            continue
        total += (int(fields[1]) - int(fields[2])) * page
    return total


def read_proportional_bytes(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
    return total


def load_libc() -> Any:
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return None


def become_subreaper(libc: Any) -> None:
    """Orphans of the container become our children, so that none escapes the end."""
    if sys.platform == "linux" and libc is not None:
        libc.prctl(36, 1, 0, 0, 0)


class Surroundings:
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
            network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            user = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
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


AT_FDCWD, OPEN_TREE_CLONE, AT_RECURSIVE, MOVE_EMPTY = -100, 1, 0x8000, 4
SET_FLAGS = 0x8914
PIVOT_ROOT = {"aarch64": 41, "riscv64": 41, "x86_64": 155}.get(os.uname().machine, 155)


class Shim:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        path = os.path.join(folder, "spec.json")
        with open(path, encoding="utf-8") as file:
            self.spec = json.load(file)
        # It may hold secrets; the process has them now.
        os.unlink(path)
        self.cgroup = self.spec.get("cgroup") or ""
        self.memory_bytes = (
            0 if self.spec.get("memoryInCgroup") else self.spec.get("memoryBytes", 0)
        )
        self.log = Log(
            os.path.join(folder, "log"), self.spec["maxLogBytes"], self.spec["maxLogFiles"]
        )
        self.libc = load_libc()
        self.main = 0
        self.status: int | None = None
        self.out_of_memory = False
        self.kill_at: float | None = None
        self.started_at = render_now()

    def run(self) -> None:
        become_subreaper(self.libc)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        wake, wake_end = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wake_end, False)
        signal.set_wakeup_fd(wake_end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        control = os.open(os.path.join(self.folder, "control"), os.O_RDWR | os.O_NONBLOCK)
        streams, error = self.start()
        if error:
            if self.main:
                os.waitpid(self.main, 0)
            self.finish({"exitCode": START_ERROR, "reason": "StartError", "message": error})
            return
        self.record_start()
        self.serve(streams, control, wake)
        self.kill_tree()
        self.drain(streams)
        self.finish(self.read_result())

    def start(self) -> tuple[dict[int, str], str]:
        # One pipe for both streams: two would lose the order in which their lines were written.
        out, out_end = os.pipe()
        failure, failure_end = os.pipe()
        network = self.spec.get("namespace", {}).get("network")
        try:
            if network:
                Surroundings(self.libc).join_network(network)
        except OSError as error:
            return {}, f"the network of the job: {error}"
        self.main = os.fork()
        if self.main == 0:
            try:
                self.become_container(out_end)
            except (OSError, ValueError, KeyError) as error:
                # ValueError: a zero byte in an argument or variable.
                os.write(failure_end, str(error).encode()[:2048])
            finally:
                os._exit(127)
        for fd in (out_end, failure_end):
            os.close(fd)
        text = b""
        while piece := os.read(failure, 4096):
            text += piece
        os.close(failure)
        return {out: "stdout"}, text.decode(errors="replace")

    def become_container(self, out_end: int) -> None:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD
        ):  # fmt: skip
            signal.signal(number, signal.SIG_DFL)
        if self.cgroup:
            with open(os.path.join(self.cgroup, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out_end, 1), (out_end, 2)):
            os.dup2(source, target)
        if self.spec.get("namespace"):
            Surroundings(self.libc).enter(self.spec["namespace"])
        if sys.platform == "linux" and self.libc is not None:
            # Should the shim itself be killed, its process must not train on unseen. Entering a
            # user namespace forgets this, so that it comes after.
            self.libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        os.umask(self.spec.get("umask", 0o022))
        os.chdir(self.spec["cwd"])
        os.execvpe(self.spec["argv"][0], self.spec["argv"], self.spec["env"])  # noqa: S606 - its purpose

    def record_start(self) -> None:
        record = {
            "protocol": PROTOCOL,
            "pid": self.main,
            "startTicks": read_start_time(self.main),
            "shimPid": os.getpid(),
            "shimStartTicks": read_start_time(os.getpid()),
            "bootId": read_boot_id(),
            "startedAt": self.started_at,
            "cgroup": self.cgroup,
        }
        write_record(self.folder, "started.json", record)
        self.announce(b"started\n")

    def announce(self, text: bytes) -> None:
        try:
            os.write(1, text)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.close(null)
        except OSError:
            # The plane is gone: it will find the record.
            return

    def serve(self, streams: dict[int, str], control: int, wake: int) -> None:
        poll = select.poll()
        for fd in (*streams, control, wake):
            poll.register(fd, select.POLLIN)
        commands = b""
        while self.status is None:
            for fd, _event in poll.poll(self.read_timeout_ms()):
                if fd == control:
                    commands = self.obey(commands + read_some(control))
                elif fd == wake:
                    read_some(wake)
                elif not self.copy(streams, fd):
                    poll.unregister(fd)
            if self.log.open_line and time.monotonic() >= self.log.flush_at:
                self.log.flush()
            self.reap()
            self.watch_memory()
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                self.kill_tree()

    def read_timeout_ms(self) -> int | None:
        waits = [] if not self.memory_bytes else [MEMORY_PERIOD_S]
        if self.log.open_line:
            waits.append(max(0.0, self.log.flush_at - time.monotonic()))
        if self.kill_at is not None:
            waits.append(max(0.0, self.kill_at - time.monotonic()))
        return int(min(waits) * 1000) + 1 if waits else None

    def obey(self, text: bytes) -> bytes:
        *lines, rest = text.split(b"\n")
        for line in lines:
            words = line.split()
            if len(words) == 2 and words[0] == b"signal":
                self.send(int(words[1]))
            elif len(words) == 3 and words[0] == b"stop":
                self.stop(int(words[1]), float(words[2]))
        return rest

    def stop(self, number: int, grace_s: float) -> None:
        deadline = time.monotonic() + grace_s
        self.kill_at = deadline if self.kill_at is None else min(self.kill_at, deadline)
        if grace_s > 0:
            self.send(number)

    def send(self, number: int) -> None:
        try:
            if self.status is None:
                os.kill(self.main, number)
        except ProcessLookupError:
            return

    def copy(self, streams: dict[int, str], fd: int) -> bool:
        data = os.read(fd, CHUNK_BYTES)
        if data:
            self.log.write(streams[fd], data)
        return bool(data)

    def drain(self, streams: dict[int, str]) -> None:
        """Take what is left in the pipes; every writer is dead, so that reads do not wait."""
        for fd in streams:
            os.set_blocking(fd, False)
            try:
                while self.copy(streams, fd):
                    pass
            except BlockingIOError:
                continue
        self.log.flush()

    def reap(self) -> bool:
        """Collect ended children; False when there are none at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.main:
                self.status = status

    def watch_memory(self) -> None:
        if not self.memory_bytes or self.status is not None:
            return
        pids = self.find_members()
        if read_private_bytes(pids) > self.memory_bytes:
            exact = read_proportional_bytes(pids)
            if exact == 0 or exact > self.memory_bytes:
                self.out_of_memory = True
                self.kill_tree()

    def find_members(self) -> list[int]:
        """The container's processes; from its group where there is one, which spares the walk."""
        try:
            with open(os.path.join(self.cgroup, "cgroup.procs"), encoding="ascii") as file:
                return [int(line) for line in file]
        except OSError:
            return find_descendants(os.getpid())

    def kill_tree(self) -> None:
        """SIGKILL everything below until nothing is left: sessions of their own do not matter."""
        pause = 0.001
        while True:
            if self.cgroup:
                self.kill_cgroup()
            for pid in find_descendants(os.getpid()):
                try:
                    os.kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    continue
            if not self.reap():
                return
            time.sleep(pause)
            pause = min(pause * 2, 0.2)

    def kill_cgroup(self) -> None:
        try:
            with open(os.path.join(self.cgroup, "cgroup.kill"), "w", encoding="ascii") as file:
                file.write("1")
        except OSError:
            return

    def read_result(self) -> dict[str, Any]:
        code = os.waitstatus_to_exitcode(self.status or 0)
        result: dict[str, Any] = {"exitCode": code if code >= 0 else 128 - code}
        if code < 0:
            result["signal"] = -code
        if self.out_of_memory or self.was_out_of_memory():
            result |= {"exitCode": 137, "reason": "OOMKilled"}
        return result

    def was_out_of_memory(self) -> bool:
        if not (self.cgroup and self.spec.get("memoryInCgroup")):
            return False
        try:
            with open(os.path.join(self.cgroup, "memory.events"), encoding="ascii") as file:
                counts = dict(line.split() for line in file)
        except OSError:
            return False
        return int(counts.get("oom_kill", "0")) > 0

    def finish(self, result: dict[str, Any]) -> None:
        result |= {"startedAt": self.started_at, "finishedAt": render_now()}
        if self.cgroup:
            self.remove_cgroup()
        write_record(self.folder, "exit.json", result)
        self.announce(b"ended\n")

    def remove_cgroup(self) -> None:
        for _attempt in range(50):
            try:
                os.rmdir(self.cgroup)
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)
            else:
                return


def read_some(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except BlockingIOError:
        return b""


def is_below(path: str, other: str) -> bool:
    return path.startswith(other.rstrip("/") + "/")


def probe(stage: str, network: str) -> int:
    """Whether mounts of a container's own are allowed here, and a network: exit 0, or 1 saying why."""
    surroundings = Surroundings(load_libc())
    source = os.path.join(stage, "source")
    os.makedirs(source, exist_ok=True)
    view = os.path.join(stage, "view")
    os.makedirs(view, exist_ok=True)
    targets = ("/trainwright-probe/below", "/trainwright-other", "/etc/trainwright/x")
    try:
        if network:
            surroundings.join_network(network)
        surroundings.enter(
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


def main(arguments: list[str]) -> None:
    os.umask(0o077)
    if arguments[0] == "--probe":
        sys.exit(probe(*arguments[1:]))
    Shim(arguments[0]).run()


if __name__ == "__main__":
    main(sys.argv[1:])
