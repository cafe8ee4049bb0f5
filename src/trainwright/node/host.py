"""What all pods of this node share: settings, ports, groups, folders, and what they may read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api.kinds import (
    CONFIG_MAP,
    JOBSET,
    PERSISTENT_VOLUME_CLAIM,
    SECRET,
    Kind,
)
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.errors import Conflict, LocalRunError, NotFound
from trainwright.base.objects import (
    Object,
    ObjectView,
    dig,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainwright.machinery.api import PatchType
from trainwright.machinery.apply import other_object_as_conflict
from trainwright.node import mpi, names, ports, volumes
from trainwright.node.cgroups import CgroupRoot, ensure_cgroup_root
from trainwright.node.environment import (
    Sources,
    list_references,
)
from trainwright.node.instance import ensure_shim_program
from trainwright.node.settings import MANAGER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trainwright.base.times import Clock
    from trainwright.machinery.api import Api
    from trainwright.node.settings import NodeSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFolders:
    """The folders of one pod."""

    pod: Path
    memory: Path

    def container(self, name: str) -> Path:
        """Holds a folder for each run of the container."""
        return self.pod / "containers" / name

    @property
    def work(self) -> Path:
        """Where processes start that name no folder."""
        return self.pod / "work"


class Host:
    """This machine as its pods share it."""

    def __init__(self, api: Api, settings: NodeSettings, clock: Clock) -> None:
        self.api = api
        self.settings = settings
        self.clock = clock
        settings.pods_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings.home.chmod(0o700)
        self.ports = ports.PortBook(
            settings.home / "ports", settings.first_port, settings.last_port
        )
        self.memory = volumes.find_memory_folder(settings.home, os.getuid(), os.environ)
        self.mpi_agent = mpi.ensure_agent(settings.home)
        self.shim_program = ensure_shim_program(settings.home)
        self.cgroups: CgroupRoot | None = (
            ensure_cgroup_root(f"trainwright-{os.getuid()}")
            if sys.platform == "linux" and settings.use_cgroups
            else None
        )
        self.has_networks = settings.isolation == "namespace"
        refusal = "not asked for" if settings.isolation == "none" else self._probe_namespaces()
        if refusal and self.has_networks:
            raise LocalRunError(
                f"isolation is set to namespace, but this system does not allow it: {refusal}; "
                "set isolation to auto"
            )
        self.has_namespaces = not refusal
        self.capacity = observe_capacity(settings)

    def _probe_namespaces(self) -> str:
        """Why this system does not allow the namespaces that are asked for; empty: it does."""
        if sys.platform != "linux":
            return "it is not Linux"
        if self.has_networks and shutil.which("nsenter") is None:
            return "the program nsenter (of util-linux) is missing"
        stage = self.settings.home / "probe"
        stage.mkdir(exist_ok=True, mode=0o700)
        network = str(stage / "network") if self.has_networks else ""
        command = [
            sys.executable,
            "-I",
            "-S",
            str(self.shim_program),
            "--probe",
            str(stage),
            network,
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=30, check=False, text=True)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        return (done.stderr.strip() or "the probe failed") if done.returncode else ""

    def network_file(self, job: str) -> Path:
        """Names the processes that are in the network of a job."""
        return self.settings.home / "networks" / job

    def release_job(self, job: str) -> None:
        """Forget what a job's pods shared, once it has none."""
        self.ports.release(job)
        self.network_file(job).unlink(missing_ok=True)

    def release_jobs_except(self, jobs: set[str]) -> None:
        """Forget what the pods of all jobs but `jobs` shared."""
        self.ports.release_except(jobs)
        for path in (self.settings.home / "networks").glob("*"):
            if path.name not in jobs:
                path.unlink(missing_ok=True)

    def folders_of(self, uid: str) -> PodFolders:
        """The folders of the pod with that uid."""
        return PodFolders(pod=self.settings.pods_folder / uid, memory=self.memory / uid)

    def remove_folders(self, uid: str) -> None:
        """Remove everything of a pod that is gone."""
        folders = self.folders_of(uid)
        for folder in (folders.memory, folders.pod):
            if folder.exists():
                volumes.remove_tree(folder)

    def remove_secrets(self, uid: str) -> None:
        """Remove the secret volumes of a pod that has ended: its object may stay for long."""
        folder = self.folders_of(uid).memory
        if folder.exists():
            volumes.remove_tree(folder)

    def list_pod_uids(self) -> set[str]:
        """The pods that have a folder here, whether they are there or not."""
        roots = (self.settings.pods_folder, self.memory)
        return {folder.name for root in roots if root.is_dir() for folder in root.iterdir()}

    def hold_memory(self) -> None:
        """Take the place on the tmpfs before there is a secret, so that nobody else can.

        Raises:
            LocalRunError: somebody has.
        """
        volumes.ensure_memory_folder(self.memory, os.getuid())

    def release_memory(self) -> None:
        """Leave nothing on the tmpfs once no pod has a volume there."""
        for folder in (self.memory, self.memory.parent):
            try:
                folder.rmdir()
            except OSError:
                # Not there, or in use: by a pod of ours, or by another home of this user.
                return

    def claims_folder(self) -> Path:
        """Where PersistentVolumeClaims have their folders."""
        return self.settings.home / "claims"

    async def observe_sources(self, pod: ObjectView) -> Sources:
        """Read the ConfigMaps and Secrets that a pod refers to."""
        maps, secrets = list_references(pod)
        namespace = namespace_of(pod)
        return Sources(
            config_maps={n: await self._find(CONFIG_MAP, namespace, n) for n in maps if n},
            secrets={n: await self._find(SECRET, namespace, n) for n in secrets if n},
        )

    async def observe_claims(self, pod: ObjectView) -> dict[str, ObjectView | None]:
        """Read the claims that a pod mounts."""
        rows = dig(pod, "spec", "volumes", default=[])
        claims = [dig(row, "persistentVolumeClaim", "claimName") for row in rows]
        namespace = namespace_of(pod)
        return {
            name: await self._find(PERSISTENT_VOLUME_CLAIM, namespace, name)
            for name in claims
            if name
        }

    async def publish_bound(self, claims: Mapping[str, ObjectView | None]) -> None:
        """Say of claims that a pod uses that they have their storage: they wait for that."""
        for claim in claims.values():
            if claim is None or dig(claim, "status", "phase") == "Bound":
                continue
            status = {
                "phase": "Bound",
                "accessModes": dig(claim, "spec", "accessModes", default=[]),
                "capacity": dig(claim, "spec", "resources", "requests", default={}),
            }
            with suppress(NotFound, Conflict), other_object_as_conflict():
                await self.api.patch(
                    PERSISTENT_VOLUME_CLAIM,
                    namespace_of(claim),
                    name_of(claim),
                    {"metadata": {"uid": uid_of(claim)}, "status": status},
                    type=PatchType.MERGE,
                    subresource="status",
                    field_manager=MANAGER,
                )

    async def observe_siblings(self, pod: ObjectView) -> tuple[str, ...]:
        """Host names of all pods of this pod's JobSet."""
        name = labels_of(pod).get(JOBSET_NAME_LABEL)
        if not name:
            return ()
        jobset = await self._find(JOBSET, namespace_of(pod), name)
        return names.list_sibling_hosts(jobset) if jobset else ()

    async def _find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        try:
            return await self.api.get(kind, namespace, name)
        except NotFound:
            return None

    async def observe_tokens(self, pod: Object) -> dict[str, str]:
        """Issue the service account tokens that a pod's projected volumes ask for, by path."""
        tokens: dict[str, str] = {}
        if self.settings.issue_token is None:
            return tokens
        for volume in dig(pod, "spec", "volumes", default=[]):
            for source in dig(volume, "projected", "sources", default=[]):
                row = source.get("serviceAccountToken")
                if row:
                    tokens[row["path"]] = await self.settings.issue_token(pod, row)
        return tokens


def observe_capacity(settings: NodeSettings) -> dict[str, str]:
    """What this machine has, as a Node's capacity says it."""
    memory_kib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    disk_kib = shutil.disk_usage(settings.home).total // 1024
    return {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{memory_kib}Ki",
        "ephemeral-storage": f"{disk_kib}Ki",
        "pods": "1000",
        **settings.resource_capacity,
    }
