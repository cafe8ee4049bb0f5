"""Ports of jobs that share one machine: each rendezvous port of a job is mapped to a free one.

Servers listen on all interfaces, so that addresses of their own would not keep two jobs apart. The
mapping belongs to the job (all its pods read the same) and is kept in a file while it lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from typing import TYPE_CHECKING

from trainwright.api.env import Rewrite, names_to_rewrite
from trainwright.api.wellknown import CONTROLLER_UID_LABEL, JOBSET_UID_LABEL
from trainwright.base.errors import LocalRunError
from trainwright.base.objects import ObjectView, labels_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

PORT_VARIABLES = names_to_rewrite(Rewrite.PORT)
ENDPOINT_VARIABLES = names_to_rewrite(Rewrite.ENDPOINT)
"""Variables that hold `host:port`."""
_ENDPOINT = re.compile(r"^[^\s:]+:(\d{1,5})$")
_PORT_OPTION = re.compile(r"^--?[\w-]*port$")


def job_key_of(pod: ObjectView) -> str:
    """What shares ports: the pod's JobSet, else its Job, else the pod itself."""
    labels = labels_of(pod)
    return labels.get(JOBSET_UID_LABEL) or labels.get(CONTROLLER_UID_LABEL) or uid_of(pod)


def find_declared_ports(
    variables: Mapping[str, str], words: Sequence[str], names: re.Pattern[str] | None
) -> frozenset[int]:
    """The rendezvous ports that a container's variables and command declare.

    These are the ports of known variables, and those right behind a name of the job's pods.
    """
    found: set[int] = set()
    for variable in PORT_VARIABLES:
        value = variables.get(variable, "")
        if value.isascii() and value.isdigit():
            found.add(int(value))
    for variable in ENDPOINT_VARIABLES:
        match = _ENDPOINT.match(variables.get(variable, ""))
        if match:
            found.add(int(match.group(1)))
    if names is not None:
        behind = re.compile(names.pattern + r":(\d{1,5})(?!\d)")
        for text in (*words, *variables.values()):
            found |= {int(match.group(1)) for match in behind.finditer(text)}
    return frozenset(port for port in found if 0 < port < 65536)


def rewrite_ports(text: str, ports: Mapping[int, int]) -> str:
    """`text` with each exact token `:PORT` mapped (`host:29500`, `tcp://host:29500/x`)."""
    for declared, mapped in ports.items():
        text = re.sub(rf"(?<=[\w\]]):{declared}(?!\d)", f":{mapped}", text)
    return text


def rewrite_port_variables(
    variables: Mapping[str, str], ports: Mapping[int, int]
) -> dict[str, str]:
    """Variables with the mapped ports in them."""
    rewritten = {}
    for name, value in variables.items():
        if name in PORT_VARIABLES and value.isascii() and value.isdigit():
            rewritten[name] = str(ports.get(int(value), int(value)))
        else:
            rewritten[name] = rewrite_ports(value, ports)
    return rewritten


def rewrite_port_words(words: Sequence[str], ports: Mapping[int, int]) -> tuple[str, ...]:
    """A command with the mapped ports: `:29500`, `--master-port 29500`, `--master_port=29500`."""
    rewritten: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        is_option = bool(equals) and _PORT_OPTION.match(option) is not None
        follows_option = bool(rewritten) and _PORT_OPTION.match(rewritten[-1]) is not None
        if is_option and value.isdigit() and int(value) in ports:
            rewritten.append(f"{option}={ports[int(value)]}")
        elif follows_option and word.isdigit() and int(word) in ports:
            rewritten.append(str(ports[int(word)]))
        else:
            rewritten.append(rewrite_ports(word, ports))
    return tuple(rewritten)


def is_port_free(port: int) -> bool:
    """Whether a server could listen on the port on all interfaces now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            return False
    return True


class PortBook:
    """The port mappings of all jobs of one home folder."""

    def __init__(
        self, folder: Path, first: int, last: int, *, is_free: Callable[[int], bool] = is_port_free
    ) -> None:
        self._folder = folder
        self._first, self._last = first, last
        self._is_free = is_free
        self._jobs: dict[str, dict[int, int]] = dict(self._read())
        self._next = first

    def _read(self) -> Iterator[tuple[str, dict[int, int]]]:
        if not self._folder.is_dir():
            return
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                rows = json.loads(path.read_text(encoding="utf-8"))
                yield path.stem, {int(declared): int(mapped) for declared, mapped in rows.items()}

    def map_ports(self, job: str, declared: Iterable[int]) -> Mapping[int, int]:
        """The job's mapping, grown by ports that it has not declared before.

        Raises:
            LocalRunError: no port of the range is free.
        """
        mapping = self._jobs.setdefault(job, {})
        missing = sorted(set(declared) - set(mapping))
        for port in missing:
            mapping[port] = self._take()
        if missing:
            self._write(job, mapping)
        return dict(mapping)

    def find_ports(self, pod: ObjectView) -> Mapping[int, int]:
        """The mapping that the pod's job has so far."""
        return dict(self._jobs.get(job_key_of(pod), {}))

    def _take(self) -> int:
        taken = {port for mapping in self._jobs.values() for port in mapping.values()}
        span = self._last - self._first + 1
        for step in range(span):
            port = self._first + (self._next - self._first + step) % span
            if port not in taken and self._is_free(port):
                self._next = port + 1
                return port
        raise LocalRunError(
            f"no free port from {self._first} to {self._last}; end jobs that are not needed"
        )

    def _write(self, job: str, mapping: Mapping[int, int]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{job}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(mapping), encoding="utf-8")
        os.replace(new, path)

    def release_except(self, jobs: Iterable[str]) -> None:
        """Forget the mappings of all jobs but `jobs`."""
        kept = set(jobs)
        for job in [job for job in self._jobs if job not in kept]:
            self.release(job)

    def release(self, job: str) -> None:
        """Forget the mapping of one job."""
        if self._jobs.pop(job, None):
            (self._folder / f"{job}.json").unlink(missing_ok=True)
