"""One container's keeper: starts the process that FOLDER/spec.json describes and sees it to its end.

It writes the output to FOLDER/log, takes commands from the pipe FOLDER/control, and leaves no process
behind. It needs nobody: the plane may go and come back.

Files it writes, each by rename: started.json (pid, start time, boot id) and exit.json.
Commands, one a line: `signal NUMBER`, `stop NUMBER GRACE_S` (the signal to the process, after the grace
SIGKILL to the whole tree); since protocol 2 `start NAME` (a command beside the process, see `beside`).
"""

# ruff: noqa: D101, D102, D103 - a program: nobody calls these from outside
from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from trainwright.node.shim.log import CHUNK_BYTES, Log
from trainwright.node.shim.processes import (
    become_subreaper,
    find_descendants,
    load_libc,
    read_boot_id,
    read_private_bytes,
    read_proportional_bytes,
    read_start_time,
)
from trainwright.node.shim.records import render_now, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = 2
"""Told in started.json: a later plane finds keepers of this version and must know what they know."""
MEMORY_PERIOD_S = 0.25
START_ERROR = 128


class Keeper:
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
                from trainwright.node.shim.namespaces import Namespaces

                Namespaces(self.libc).join_network(network)
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
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out_end, 1), (out_end, 2)):
            os.dup2(source, target)
        self.forget_signals()
        self.join_cgroup()
        if self.spec.get("namespace"):
            # Only here, in the process that becomes the container: the keeper stays small.
            from trainwright.node.shim.namespaces import Namespaces

            Namespaces(self.libc).enter(self.spec["namespace"])
        self.execute(self.spec["argv"])

    def forget_signals(self) -> None:
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD
        ):  # fmt: skip
            signal.signal(number, signal.SIG_DFL)

    def join_cgroup(self) -> None:
        if self.cgroup:
            with open(os.path.join(self.cgroup, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")

    def execute(self, argv: list[str]) -> None:
        # Should the shim itself be killed, its process must not train on unseen. Entering a
        # user namespace forgets this, so that it comes after.
        self.die_with_parent()
        os.umask(self.spec.get("umask", 0o022))
        os.chdir(self.spec["cwd"])
        os.execvpe(argv[0], argv, self.spec["env"])  # noqa: S606 - its purpose

    def die_with_parent(self) -> None:
        if sys.platform == "linux" and self.libc is not None:
            self.libc.prctl(1, signal.SIGKILL, 0, 0, 0)

    def start_beside(self, name: str) -> None:
        """Start a command that somebody asks for, in a process that sees it to its end."""
        if self.status is not None or os.fork() != 0:
            return
        try:
            self.forget_signals()
            self.die_with_parent()
            from trainwright.node.shim.beside import serve_request

            serve_request(self.folder, name, self.become_beside)
        except (OSError, ValueError, KeyError) as error:
            os.write(2, f"start {name}: {error}\n".encode())
        finally:
            os._exit(0)

    def become_beside(self, argv: list[str]) -> None:
        self.forget_signals()
        self.join_cgroup()
        if self.spec.get("namespace"):
            from trainwright.node.shim.namespaces import Namespaces

            Namespaces(self.libc).follow_mounts(self.main, self.spec["namespace"])
        self.execute(argv)

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
            elif len(words) == 2 and words[0] == b"start":
                self.start_beside(os.fsdecode(words[1]))
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


def main(arguments: list[str]) -> None:
    os.umask(0o077)
    if arguments[0] == "--probe":
        from trainwright.node.shim.namespaces import probe

        sys.exit(probe(*arguments[1:]))
    Keeper(arguments[0]).run()
