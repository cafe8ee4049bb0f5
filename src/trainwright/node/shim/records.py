"""Files by which a keeper tells how it stands: written by rename, into room taken before."""

# ruff: noqa: D103 - a program: nobody calls these from outside
from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


RECORD_BYTES = 4096
RECORDS = ("started.json", "exit.json")


def reserve_records(folder: str) -> None:
    """Take the room of all records now, so that they can be written when the disk is full.

    Whoever starts the shim calls this: a process without its records is lost, so that none may
    begin where there is no room for them.
    """
    for name in RECORDS:
        with open(os.path.join(folder, name + ".new"), "wb") as file:
            file.write(b" " * RECORD_BYTES)


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
