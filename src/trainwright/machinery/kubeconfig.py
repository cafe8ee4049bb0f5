"""Reading a kubeconfig: which server, which authority, which token."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from trainwright.api.manifests import ManifestError, parse_yaml
from trainwright.base.errors import TrainwrightError
from trainwright.base.objects import dig
from trainwright.machinery.client import Connection

if TYPE_CHECKING:
    from pathlib import Path


class KubeconfigError(TrainwrightError, ValueError):
    """A kubeconfig that cannot be used, and why."""


def read_kubeconfig(path: Path, context: str = "") -> Connection:
    """The connection of a context (the current one by default).

    Raises:
        KubeconfigError: when the file is missing, is no kubeconfig, or names what is not there.
    """
    try:
        document: Any = parse_yaml(path.read_text(), str(path), strict=False)
    except OSError as error:
        raise KubeconfigError(f"{path}: {error.strerror or error}") from error
    except ManifestError as error:
        raise KubeconfigError(str(error)) from error
    wanted = context or dig(document, "current-context", default="")
    chosen = _entry(path, document, "contexts", wanted)
    cluster = _entry(path, document, "clusters", dig(chosen, "context", "cluster", default=""))
    user = _entry(path, document, "users", dig(chosen, "context", "user", default=""))
    return Connection(
        server=str(dig(cluster, "cluster", "server", default="")).rstrip("/"),
        ca_file=_file(path, dig(cluster, "cluster", "certificate-authority")),
        ca_data=_decoded(path, dig(cluster, "cluster", "certificate-authority-data", default="")),
        insecure=bool(dig(cluster, "cluster", "insecure-skip-tls-verify", default=False)),
        token=dig(user, "user", "token", default=""),
        token_file=_file(path, dig(user, "user", "tokenFile")),
        client_certificate=_file(path, dig(user, "user", "client-certificate")),
        client_key=_file(path, dig(user, "user", "client-key")),
        namespace=dig(chosen, "context", "namespace", default="default"),
    )


def _entry(path: Path, document: Any, section: str, name: str) -> Any:
    entries = dig(document, section, default=[])
    found = next((entry for entry in entries if dig(entry, "name") == name), None)
    if found is None:
        known = ", ".join(str(dig(entry, "name")) for entry in entries) or "none"
        raise KubeconfigError(f'{path}: {section} has no "{name}" (it has: {known})')
    return found


def _file(config: Path, value: str | None) -> Path | None:
    return (config.parent / value) if value else None


def _decoded(path: Path, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{path}: certificate-authority-data is no base64 text") from error
