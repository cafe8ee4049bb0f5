"""One run of a container: its folder, its shim, and how both are found again after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainwright.node import shim
from trainwright.node.cgroups import kill_group
from trainwright.node.shim import processes, records

MARKER = "TRAINWRIGHT_CONTAINER_ID"
"""Variable of every process of a container: by it what a killed shim left behind is found."""
SOURCE_ROOT = Path(shim.__file__).parents[3]
PACKAGES = tuple(Path(shim.__file__).parents[1:3])
"""Above the shim's own package: they are imported with it."""
_FOLDER_NAME = re.compile(r"\d+\.\d+")
SHIM_ERRORS = "shim.err"
"""The last file that is made before a shim starts: without it nothing has run in a folder."""
KILL_ROUNDS = 20
POLL_S = 0.2
"""How often a process is looked at where the system cannot tell of its end."""

Record = Mapping[str, Any]


def ensure_shim_program(home: Path) -> Path:
    """The shim compiled once, so that each start spares the compiling; the source if that fails.

    Its package lies below a folder of its own, under the names by which it imports itself.
    """
    source = Path(shim.__file__).parent
    files = [*sorted(source.glob("*.py")), *(folder / "__init__.py" for folder in PACKAGES)]
    text = b"".join(file.read_bytes() for file in files)
    folder = home / f"shim-{sys.implementation.cache_tag}-{hashlib.sha256(text).hexdigest()[:12]}"
    if not folder.exists():
        try:
            _compile(files, folder)
        except (OSError, py_compile.PyCompileError):
            return source / "__main__.py"
    _drop_old_programs(home, folder)
    return folder / source.relative_to(SOURCE_ROOT) / "__main__.pyc"


def _compile(files: Iterable[Path], folder: Path) -> None:
    new = folder.with_name(folder.name + ".new")
    for file in files:
        target = (new / file.relative_to(SOURCE_ROOT)).with_suffix(".pyc")
        py_compile.compile(str(file), cfile=str(target), doraise=True, optimize=2)
    new.replace(folder)


def _drop_old_programs(home: Path, current: Path) -> None:
    """Remove what other versions compiled, but for what a process still runs."""
    others = [path for path in home.glob("shim-*") if path != current]
    if not others or not Path("/proc").is_dir():
        return
    used = b"\0".join(_read_command_lines())
    for path in others:
        if os.fsencode(path) not in used:
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _read_command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


class Instance:
    """A run that was started or found again."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        self._process = process
        # Held open from the start: what is written before the shim reads must not be lost.
        self._control = _open_control(folder, os.O_RDWR) if process is not None else -1

    @property
    def number(self) -> int:
        """How many runs of the container came before."""
        return _read_folder_name(self.folder)[1]

    @property
    def container_id(self) -> str:
        """`trainwright://<hex>`."""
        return read_container_id(self.folder)

    def read_started(self) -> Record | None:
        """The start record, once the process runs."""
        return _read_record(self.folder / "started.json")

    def read_exit(self) -> Record | None:
        """The exit record, once nothing of the container is left."""
        return _read_record(self.folder / "exit.json")

    async def wait_started(self) -> Record | None:
        """Wait for the start record; None when the process could not be started."""
        if self._process is not None and self._process.stdout is not None:
            await _wait_readable(self._process.stdout.fileno())
            self._process.stdout.close()
        return self.read_started()

    async def wait(self) -> Record | None:
        """Wait until the shim is gone; the exit record, None when it left none."""
        pid = self._find_shim_pid()
        if pid:
            await _wait_exit(pid, self.is_alive)
        if self._process is not None:
            self._process.wait()
        self._close_control()
        return self.read_exit()

    def _find_shim_pid(self) -> int:
        if self._process is not None:
            return self._process.pid
        return int((self.read_started() or {}).get("shimPid", 0)) if self.is_alive() else 0

    def is_alive(self) -> bool:
        """Whether the shim runs: the very process that wrote the start record."""
        if self._process is not None:
            return self._process.poll() is None
        started = self.read_started()
        if not started or started["bootId"] != processes.read_boot_id():
            return False
        pid = int(started["shimPid"])
        if processes.read_start_time(pid) != int(started["shimStartTicks"]):
            return False
        return _exists(pid)

    def stop(self, number: int, grace_s: float) -> None:
        """Send a signal now and SIGKILL to the whole tree after the grace (0: at once)."""
        self._command(f"stop {number} {grace_s}\n")

    def _command(self, text: str) -> None:
        if self._control < 0:
            self._control = _open_control(self.folder, os.O_WRONLY)
        if self._control >= 0:
            # Refused when the pipe is full or has no reader: the shim is gone, or has been told.
            with contextlib.suppress(OSError):
                os.write(self._control, text.encode())

    def _close_control(self) -> None:
        if self._control >= 0:
            os.close(self._control)
            self._control = -1

    def detach(self) -> None:
        """Leave the process running when this one goes: it will be found again by its folder."""
        self._close_control()
        if self._process is not None and self._process.returncode is None:
            if self._process.stdout is not None:
                self._process.stdout.close()
            # Otherwise Python warns of, and later waits for, a child that is meant to outlive us.
            self._process.returncode = 0

    def kill_remains(self) -> None:
        """SIGKILL what a shim that was killed itself left behind."""
        started = self.read_started() or {}
        if started.get("cgroup"):
            kill_group(Path(started["cgroup"]))
        marker = f"{MARKER}={self.container_id}".encode()
        for _round in range(KILL_ROUNDS):
            # Again, for what was forked meanwhile.
            found = find_marked(marker)
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                return


def _open_control(folder: Path, mode: int) -> int:
    try:
        return os.open(folder / "control", mode | os.O_NONBLOCK)
    except OSError:
        # No reader: the shim is gone, and with it what was to be stopped.
        return -1


def find_marked(marker: bytes) -> list[int]:
    """Processes that have a variable, given as `NAME=value`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if marker in variables:
            found.append(int(path.parent.name))
    return found


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read_record(path: Path) -> Record | None:
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record


def read_container_id(folder: Path) -> str:
    """The id of the instance in a folder."""
    try:
        return "trainwright://" + (folder / "id").read_text(encoding="ascii")
    except OSError:
        return ""


def start_instance(
    folder: Path, spec: Mapping[str, Any], *, container_id: str, program: Path
) -> Instance:
    """Start a shim for `spec` in a new folder. Returns before the process itself runs.

    Raises:
        OSError: the folder cannot be made or the shim not be started.
    """
    folder.mkdir(parents=True, mode=0o700)
    try:
        _fill_folder(folder, spec, container_id)
        return Instance(folder, _start_shim(folder, program))
    except OSError:
        # Not to be taken for a run that was lost.
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _fill_folder(folder: Path, spec: Mapping[str, Any], container_id: str) -> None:
    (folder / "id").write_text(container_id, encoding="ascii")
    os.mkfifo(folder / "control", 0o600)
    descriptor = os.open(folder / "spec.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        json.dump(spec, file)
    records.reserve_records(str(folder))


def _start_shim(folder: Path, program: Path) -> subprocess.Popen[bytes]:
    kept = ("PATH", "LD_LIBRARY_PATH", "HOME")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    with (folder / SHIM_ERRORS).open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(program), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            env=environ,
            start_new_session=True,
        )


def instance_folder(container_folder: Path, attempt: int, number: int) -> Path:
    """Where a run of a container has its records and its log."""
    return container_folder / f"{attempt}.{number}"


def _read_folder_name(folder: Path) -> tuple[int, int]:
    attempt, _, number = folder.name.partition(".")
    return int(attempt), int(number)


def list_instances(container_folder: Path) -> list[Instance]:
    """The runs of a container that have folders, oldest first; those that never began left out."""
    if not container_folder.is_dir():
        return []
    folders = [
        path
        for path in container_folder.iterdir()
        if _FOLDER_NAME.fullmatch(path.name) and (path / SHIM_ERRORS).exists()
    ]
    return [Instance(path) for path in sorted(folders, key=_read_folder_name)]


def drop_instances(container_folder: Path, last: int) -> None:
    """Remove the runs of a container up to the number `last`."""
    for instance in list_instances(container_folder):
        if instance.number <= last:
            shutil.rmtree(instance.folder, ignore_errors=True)


async def _wait_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def _wait_exit(pid: int, is_alive: Callable[[], bool]) -> None:
    opener = getattr(os, "pidfd_open", None)
    descriptor = -1
    if opener is not None:
        try:
            descriptor = opener(pid)
        except ProcessLookupError:
            return
        except OSError:
            descriptor = -1
    if descriptor < 0:
        while is_alive():  # noqa: ASYNC110 - nothing tells us of it
            await asyncio.sleep(POLL_S)
        return
    try:
        # Between the look at the record and the opening the number may have gone to another process.
        if is_alive():
            await _wait_readable(descriptor)
    finally:
        os.close(descriptor)
