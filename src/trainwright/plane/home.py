"""Where the embedded plane keeps its files: one folder, readable by its user alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainwright.base.errors import LocalRunError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "TRAINWRIGHT_HOME"


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of one plane and what lies in it."""

    folder: Path

    @property
    def store(self) -> Path:
        """Folder of the API server's database."""
        return self.folder / "store"

    @property
    def certificates(self) -> Path:
        """The certificate authority, the server's certificate and the token."""
        return self.folder / "certificates"

    @property
    def pods(self) -> Path:
        """A folder for each Pod that is there: its specification, logs and volumes."""
        return self.folder / "pods"

    @property
    def kubeconfig(self) -> Path:
        """For kubectl and every other client; holds the token."""
        return self.folder / "kubeconfig"

    @property
    def record(self) -> Path:
        """Who runs the plane: process id and address; only there while it is up."""
        return self.folder / "plane.json"

    @property
    def log(self) -> Path:
        """What a plane in the background says."""
        return self.folder / "plane.log"

    def ensure(self) -> None:
        """Make the folder, readable by its user alone.

        Raises:
            LocalRunError: it cannot be made, belongs to somebody else, or has a name that
                certificates and configuration files cannot hold.
        """
        try:
            str(self.folder).encode()
        except UnicodeEncodeError as error:
            raise LocalRunError(
                f"{str(self.folder)!a} has a name that is not UTF-8 in this locale; "
                f"choose another folder with --data-dir or {VARIABLE}"
            ) from error
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = self.folder.stat().st_uid
            if owner != os.getuid():
                raise LocalRunError(
                    f"{self.folder} belongs to user {owner}, you are user {os.getuid()}; "
                    f"choose a folder of your own with --data-dir or {VARIABLE}"
                )
            self.folder.chmod(0o700)
        except OSError as error:
            raise LocalRunError(
                f"{self.folder} cannot be used: {error.strerror or error}; "
                f"choose another folder with --data-dir or {VARIABLE}"
            ) from error


def find_home(environ: Mapping[str, str], chosen: Path | None = None) -> Home:
    """The plane's folder: what was chosen, else TRAINWRIGHT_HOME, else the user's data folder."""
    if chosen is not None:
        return Home(chosen.absolute())
    if environ.get(VARIABLE):
        return Home(Path(environ[VARIABLE]).expanduser().absolute())
    data = environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Home(Path(data).expanduser().absolute() / "trainwright")
