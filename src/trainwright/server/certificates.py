"""Where an installation's certificates lie, when they are made anew, and the kubeconfig.

kubectl and client-go send a bearer token over TLS only, so the embedded server always speaks TLS.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainwright.api.manifests import render_yaml

if TYPE_CHECKING:
    from pathlib import Path

CA_LIFETIME = timedelta(days=3650)
SERVER_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
"""A certificate with less than this left is made anew at the next start."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where an installation's certificates lie; `ca_pem` is the CA's certificate."""

    folder: Path

    @property
    def ca_file(self) -> Path:
        """The CA's certificate."""
        return self.folder / "ca.crt"

    @property
    def ca_key_file(self) -> Path:
        """The CA's private key."""
        return self.folder / "ca.key"

    @property
    def cert_file(self) -> Path:
        """The server's certificate."""
        return self.folder / "server.crt"

    @property
    def key_file(self) -> Path:
        """The server's private key."""
        return self.folder / "server.key"

    @property
    def renewal_file(self) -> Path:
        """When one of them is due: spares most starts the loading of a cryptographic library."""
        return self.folder / "renew-at"

    @property
    def ca_pem(self) -> bytes:
        """The CA's certificate."""
        return self.ca_file.read_bytes()

    def are_due(self, now: datetime) -> bool:
        """Whether something is missing or has to be made anew."""
        files = (self.ca_file, self.ca_key_file, self.cert_file, self.key_file)
        try:
            renew_at = datetime.fromisoformat(self.renewal_file.read_text())
        except (FileNotFoundError, ValueError):
            return True
        return now >= renew_at or not all(file.exists() for file in files)


def ensure_certificates(folder: Path, now: datetime) -> Certificates:
    """Make or renew the CA and the server certificate in `folder` (0700, files 0600).

    The CA stays as long as it is valid, so that kubeconfigs which hold it stay valid too.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    certificates = Certificates(folder)
    if certificates.are_due(now):
        from trainwright.server.authority import renew_certificates

        renew_certificates(certificates, now)
    return certificates


def write_private(path: Path, data: bytes) -> None:
    """Replace a file by one that only its owner may read (0600), in one step."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def write_kubeconfig(
    path: Path, server: str, ca_pem: bytes, token: str, *, namespace: str = "default"
) -> None:
    """Write a kubeconfig with one context, readable by its owner only.

    Args:
        path: the file; missing folders are made.
        server: address such as `https://127.0.0.1:6443`.
        ca_pem: the CA's certificate.
        token: the installation's bearer token.
        namespace: the context's namespace.
    """
    name = "trainwright"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": server,
                    "certificate-authority-data": base64.b64encode(ca_pem).decode(),
                },
            }
        ],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}
        ],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(path, render_yaml(config).encode())
