"""A pod's volumes as folders, and how a container's mount paths are met by them.

Where the system allows mounts of a process' own, the folders are bound at the mount paths. Elsewhere
the mount paths in command, arguments and variables are rewritten to the folders (whole path prefixes
only), and TRAINWRIGHT_MOUNTS tells a program that builds such paths itself where they are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwright.base.errors import LocalRunError
from trainwright.base.objects import ObjectView, dig, namespace_of, uid_of
from trainwright.node.environment import (
    ConfigError,
    Rewrite,
    Sources,
    expand,
    find_source,
    read_config_map,
    read_field,
    read_resource,
    read_secret,
)
from trainwright.node.status import inits_of, mains_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DEFAULT_MODE = 0o644
SECRET_MODE = 0o600
UNREWRITTEN_KEYS = frozenset({"hostfile"})
"""Files that keep names as they are: MPI tells its hosts apart by them and resolves none."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume: path below the volume's folder, content, permission bits."""

    path: str
    content: bytes
    mode: int = DEFAULT_MODE


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume at a container's mount path."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeFolders:
    """Where volumes of one pod lie."""

    pod: Path
    """For volumes that end with the pod."""
    memory: Path
    """The same for secret ones: on a tmpfs where there is one."""
    claims: Path
    """For volumes that outlive the pod."""


def find_memory_folder(home: Path, user: int, environ: Mapping[str, str]) -> Path:
    """A private folder on a tmpfs for this home; the home itself where the system has none.

    On a tmpfs that all users share somebody else may hold our name: such a folder is passed over.
    """
    for root in (environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"):  # noqa: S108 - ours is 0700
        if root and os.path.isdir(root) and os.access(root, os.W_OK):
            top = Path(root) / f"trainwright-{user}"
            if not os.path.lexists(top) or _belongs_to(top, user):
                return top / re.sub(r"[^a-zA-Z0-9]+", "-", str(home)).strip("-")
    return home / "private"


def _belongs_to(folder: Path, user: int) -> bool:
    info = folder.lstat()
    return stat.S_ISDIR(info.st_mode) and info.st_uid == user


def ensure_memory_folder(folder: Path, user: int) -> None:
    """Make the folder that was found, and what is ours above it, readable by this user alone.

    Raises:
        LocalRunError: somebody else has taken its place meanwhile.
    """
    for path in (folder.parent, folder):
        path.mkdir(mode=0o700, exist_ok=True)
        if not _belongs_to(path, user):
            raise LocalRunError(f"{path} belongs to somebody else; secrets cannot be put there")
        path.chmod(0o700)


def claim_folder(folders: VolumeFolders, claim: ObjectView) -> Path:
    """The folder of a PersistentVolumeClaim: by uid, so that a new claim of the name is empty."""
    return folders.claims / namespace_of(claim) / uid_of(claim)


def build_files(
    pod: ObjectView,
    volume: Mapping[str, Any],
    sources: Sources,
    allocatable: Mapping[str, str],
    tokens: Mapping[str, str],
) -> tuple[File, ...]:
    """The files of a configMap, secret, downwardAPI or projected volume.

    Raises:
        ConfigError: an object or key that is not optional is missing.
    """
    if "projected" in volume:
        default = volume["projected"].get("defaultMode", DEFAULT_MODE)
        return tuple(
            file
            for source in volume["projected"].get("sources") or []
            for file in _project(pod, source, sources, allocatable, tokens, default)
        )
    return tuple(_project(pod, volume, sources, allocatable, tokens, DEFAULT_MODE))


def _project(
    pod: ObjectView,
    source: Mapping[str, Any],
    sources: Sources,
    allocatable: Mapping[str, str],
    tokens: Mapping[str, str],
    default_mode: int,
) -> Iterator[File]:
    if "configMap" in source:
        row = source["configMap"]
        obj = find_source("configmap", row, sources.config_maps)
        yield from _select("configmap", row, read_config_map(obj or {}), default_mode)
    elif "secret" in source:
        row = source["secret"]
        obj = find_source("secret", row, sources.secrets)
        mode = default_mode if row.get("defaultMode", DEFAULT_MODE) == DEFAULT_MODE else 0
        for file in _select("secret", row, read_secret(obj or {}), mode):
            yield File(file.path, file.content, SECRET_MODE if not mode else file.mode & 0o700)
    elif "downwardAPI" in source:
        row = source["downwardAPI"]
        for item in row.get("items") or []:
            text = _read_downward(pod, item, allocatable)
            mode = item.get("mode") or row.get("defaultMode") or default_mode
            yield File(item["path"], text.encode(), mode)
    elif "serviceAccountToken" in source:
        row = source["serviceAccountToken"]
        if row.get("path") in tokens:
            yield File(row["path"], tokens[row["path"]].encode(), SECRET_MODE)


def _read_downward(pod: ObjectView, item: Mapping[str, Any], allocatable: Mapping[str, str]) -> str:
    if "fieldRef" in item:
        return read_field(pod, item["fieldRef"].get("fieldPath", ""))
    reference = item.get("resourceFieldRef") or {}
    for container in (*inits_of(pod), *mains_of(pod)):
        if container["name"] == reference.get("containerName"):
            return read_resource(container, reference, allocatable)
    raise ConfigError(f"downwardAPI names no container: {item.get('path')}")


def _select(
    noun: str, row: Mapping[str, Any], data: Mapping[str, bytes], default_mode: int
) -> Iterator[File]:
    mode = row.get("defaultMode") or default_mode
    if not row.get("items"):
        for key, content in data.items():
            yield File(key, content, mode)
        return
    for item in row["items"]:
        if item["key"] in data:
            yield File(item["path"], data[item["key"]], item.get("mode") or mode)
        elif not row.get("optional"):
            name = row.get("name") or row.get("secretName")
            raise ConfigError(f"{noun} references non-existent config key: {name}/{item['key']}")


def is_secret(volume: Mapping[str, Any]) -> bool:
    """Whether a volume holds what must not lie on a disk."""
    rows = dig(volume, "projected", "sources", default=[])
    return "secret" in volume or any(
        "secret" in row or "serviceAccountToken" in row for row in rows
    )


def ensure_volume(
    volume: Mapping[str, Any],
    files: Sequence[File],
    folders: VolumeFolders,
    rewrite: Rewrite,
    claims: Mapping[str, ObjectView | None],
) -> Path:
    """Make one volume's folder and fill it; safe to repeat.

    Raises:
        ConfigError: it is of a kind that a laptop does not have, or its claim or path is missing.
    """
    name: str = volume["name"]
    if "hostPath" in volume:
        return _ensure_host_path(volume["hostPath"])
    if "persistentVolumeClaim" in volume:
        claim_name = volume["persistentVolumeClaim"].get("claimName", "")
        claim = claims.get(claim_name)
        if claim is None:
            raise ConfigError(f'persistentvolumeclaim "{claim_name}" not found')
        folder = claim_folder(folders, claim)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder
    content = {"configMap", "secret", "downwardAPI", "projected"} & set(volume)
    if not content and "ephemeral" not in volume and set(volume) - {"name", "emptyDir"}:
        kind = sorted(set(volume) - {"name"})[0]
        raise ConfigError(
            f'volume "{name}" of type {kind} cannot be mounted on the laptop; use hostPath, '
            "emptyDir or a persistentVolumeClaim"
        )
    folder = (folders.memory if is_secret(volume) else folders.pod) / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file in files:
        _write_file(folder, file, rewrite)
    return folder


def _ensure_host_path(row: Mapping[str, Any]) -> Path:
    path, kind = Path(row.get("path", "")), row.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch()
    if not path.exists():
        raise ConfigError(f"hostPath {path} does not exist on this machine")
    return path


def _write_file(folder: Path, file: File, rewrite: Rewrite) -> None:
    path = (folder / file.path).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigError(f'the file path "{file.path}" leads out of its volume')
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    content = file.content
    if path.name not in UNREWRITTEN_KEYS:
        try:
            content = rewrite(content.decode()).encode()
        except UnicodeDecodeError:
            content = file.content
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    new.chmod(file.mode & 0o777)
    new.replace(path)


def plan_mounts(
    container: Mapping[str, Any], volumes: Mapping[str, Path], variables: Mapping[str, str]
) -> tuple[Mount, ...]:
    """The mounts of one container, outer paths first.

    Raises:
        ConfigError: a mount names no volume, its subPath leads out of it, or it would hide the
            whole file system.
    """
    mounts = []
    for row in container.get("volumeMounts") or []:
        if row["name"] not in volumes:
            raise ConfigError(f'volumeMount "{row["name"]}" names no volume of the pod')
        source = volumes[row["name"]]
        below = row.get("subPath") or expand(row.get("subPathExpr") or "", variables)
        if below:
            if below.startswith("/") or ".." in Path(below).parts:
                raise ConfigError(f'subPath "{below}" leads out of its volume')
            source = source / below
        target = os.path.normpath(row["mountPath"])
        if target.strip("/") == "":
            raise ConfigError(
                f'volumeMount "{row["name"]}": mountPath "/" would hide every program of this '
                "machine; mount it below a folder such as /data"
            )
        mounts.append(Mount(source, target, bool(row.get("readOnly"))))
    return tuple(sorted(mounts, key=lambda mount: mount.target.count("/")))


def ensure_sub_paths(mounts: Sequence[Mount]) -> None:
    """Make the folders that sub-paths name and that are not there yet."""
    for mount in mounts:
        if not mount.source.exists():
            mount.source.mkdir(parents=True, exist_ok=True)


def is_in_place(mount: Mount) -> bool:
    """Whether a mount needs nothing: a hostPath at its own path."""
    return str(mount.source) == mount.target


def build_path_rewrite(mounts: Sequence[Mount]) -> Rewrite:
    """From mount paths in text to the folders behind them; longest path first."""
    moved = {m.target: str(m.source) for m in mounts if not is_in_place(m) and m.target != "/"}
    if not moved:
        return lambda text: text
    paths = "|".join(re.escape(path) for path in sorted(moved, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w./~-])({paths})(?=/|$|[^\w.-])")
    return lambda text: pattern.sub(lambda match: moved[match.group(1)], text)


def render_mounts(mounts: Sequence[Mount]) -> str:
    """The value of TRAINWRIGHT_MOUNTS: a JSON map of mount path to folder."""
    return json.dumps({m.target: str(m.source) for m in mounts}, sort_keys=True)


def remove_tree(folder: Path) -> None:
    """Remove a folder whatever permissions its user gave to what is in it."""

    def open_up(function: Any, path: str, _error: Any) -> None:
        try:
            os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
            function(path)
        except OSError:
            return

    shutil.rmtree(folder, onerror=open_up)
