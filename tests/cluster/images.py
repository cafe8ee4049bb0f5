"""Container images made from folders, without a registry: OCI archives that containerd imports."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.cluster.processes import require_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PAUSE = ("sh", "-c", "trap exit TERM; while :; do sleep 1 & wait; done")
"""What a Pod's sandbox does: wait, and go when told."""


@dataclass(frozen=True)
class _Blob:
    digest: str
    size: int

    def describe(self, media_type: str) -> dict[str, Any]:
        return {"mediaType": media_type, "digest": f"sha256:{self.digest}", "size": self.size}


def build_image(
    archive: Path,
    name: str,
    root: Path,
    *,
    command: Sequence[str] = ("sh",),
    environ: Mapping[str, str] | None = None,
    user: str = "",
) -> None:
    """Write an image with one layer.

    Args:
        archive: the file to write.
        name: with a tag, such as `trainwright.local/busybox:1`.
        root: the folder that becomes `/`.
        command: what a container runs by default.
        environ: variables besides PATH.
        user: whom a container runs as by default, such as `65532:65532`.
    """
    layer_file = archive.with_suffix(".layer")
    with tarfile.open(layer_file, "w", format=tarfile.PAX_FORMAT) as tar:
        for entry in sorted(os.listdir(root)):
            tar.add(root / entry, arcname=entry, filter=_without_names)
    layer = _hash_file(layer_file)
    variables = {"PATH": PATH, **(environ or {})}
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Env": [f"{key}={value}" for key, value in variables.items()],
            "Cmd": list(command),
            "User": user,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}"]},
    }
    config_text = json.dumps(config).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _hash(config_text).describe(CONFIG),
        "layers": [layer.describe(LAYER)],
    }
    manifest_text = json.dumps(manifest).encode()
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                **_hash(manifest_text).describe(MANIFEST),
                "platform": {"architecture": "amd64", "os": "linux"},
                "annotations": {"io.containerd.image.name": name},
            }
        ],
    }
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(tar, "index.json", json.dumps(index).encode())
        for text in (config_text, manifest_text):
            _add(tar, f"blobs/sha256/{_hash(text).digest}", text)
        tar.add(layer_file, arcname=f"blobs/sha256/{layer.digest}")
    layer_file.unlink()


def make_busybox_root(root: Path) -> Path:
    """A root file system with the usual small tools."""
    binary = require_program("busybox")
    for folder in ("bin", "tmp", "proc", "sys", "dev", "etc", "root"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(binary, root / "bin" / "busybox")
    names = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True)
    for name in names.stdout.split():
        link = root / "bin" / name
        if not link.exists():
            link.symlink_to("busybox")
    return root


def _without_names(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uname = info.gname = ""
    return info


def _hash(text: bytes) -> _Blob:
    return _Blob(hashlib.sha256(text).hexdigest(), len(text))


def _hash_file(path: Path) -> _Blob:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return _Blob(digest, path.stat().st_size)


def _add(tar: tarfile.TarFile, name: str, text: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(text)
    tar.addfile(info, io.BytesIO(text))
