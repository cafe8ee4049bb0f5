"""A container's output as one rotated file."""

# ruff: noqa: D102 - a program: nobody calls these from outside
from __future__ import annotations

import os
import time

from trainwright.node.shim.records import render_now

CHUNK_BYTES = 65536
LEAST_ROOM_BYTES = 4 * 1024 * 1024
"""What a log leaves of its disk, to records and to the store: a log may not take the last room."""
LEAST_ROOM_SHARE = 8
"""On a small disk: an eighth of it."""
OPEN_LINE_S = 0.1
"""Programs without a buffer write a line in pieces: so long its end is waited for."""
LONGEST_OPEN_LINE = 16384


def has_room(path: str) -> bool:
    """Whether the disk of a log has room for more of it."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return True
    least = min(LEAST_ROOM_BYTES, disk.f_blocks * disk.f_frsize // LEAST_ROOM_SHARE)
    return disk.f_bavail * disk.f_frsize >= least


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
