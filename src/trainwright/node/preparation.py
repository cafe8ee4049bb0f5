"""How one run of a container is prepared: what it refers to, its volumes, the process for it."""

from __future__ import annotations

import logging
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.api.wellknown import JOBSET_NAME_LABEL, WORKING_DIR_ANNOTATION
from trainwright.base.objects import (
    Object,
    ObjectView,
    annotations_of,
    dig,
    labels_of,
    uid_of,
)
from trainwright.core.journal import attempt_of
from trainwright.merge.quantity import parse_quantity
from trainwright.node import mpi, names, ports, rsh, volumes
from trainwright.node.environment import (
    ConfigError,
    Rewrite,
    Sources,
    build_command,
    build_environment,
    build_service_variables,
)
from trainwright.node.instance import MARKER
from trainwright.node.status import inits_of, mains_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trainwright.node.host import Host


logger = logging.getLogger(__name__)

INHERITED = re.compile(
    r"^(PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|SHELL|TMPDIR|TERM|LD_LIBRARY_PATH|SSL_CERT_\w+"
    r"|(https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY|CUDA_\w+|NVIDIA_\w+|XDG_\w+)$"
)
"""What pods take over of the plane's own environment: the machine, not the user's shell."""
DEFAULT_VARIABLES = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | dict.fromkeys(
    names.INTERFACE_VARIABLES, names.LOOPBACK_DEVICE
)
TERMINATION_LOG = "termination-log"
DEFAULT_TERMINATION_PATH = "/dev/termination-log"
PROGRAM_HINTS = {
    "torchrun": "install torch into the Python environment that the plane runs with",
    "tune": "install torchtune into the Python environment that the plane runs with",
    "deepspeed": "install deepspeed into the Python environment that the plane runs with",
    "mpirun": "install Open MPI (Debian: openmpi-bin) or MPICH",
    "mpiexec": "install Open MPI (Debian: openmpi-bin) or MPICH",
    "flux": "install Flux; there is no package of it on PyPI",
    "bash": "install bash, or give a command for sh",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was read from the API server to prepare one run."""

    sources: Sources
    claims: Mapping[str, ObjectView | None]
    tokens: Mapping[str, str]
    siblings: Sequence[str] = ()


async def observe_references(host: Host, pod: Object) -> Observed:
    """Read what one run of a pod refers to."""
    return Observed(
        sources=await host.observe_sources(pod),
        claims=await host.observe_claims(pod),
        tokens=await host.observe_tokens(pod),
        siblings=await host.observe_siblings(pod) if host.has_namespaces else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One run of a container, ready to start: the shim's spec, its command as it will be exec'd."""

    spec: dict[str, Any]
    port_map: Mapping[int, int]
    lost_folder: str = ""
    """The folder that its job was submitted from, where it is wanted and not there."""


def with_addresses(pod: ObjectView, host_ip: str) -> Object:
    """The pod with the addresses that it will have, for fields that refer to them."""
    addresses = {
        "hostIP": host_ip,
        "podIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIPs": [{"ip": host_ip}],
    }
    return {**pod, "status": {**dig(pod, "status", default={}), **addresses}}


def prepare_run(
    host: Host, pod: Object, container: Mapping[str, Any], folder: Path, observed: Observed
) -> Prepared:
    """Make a container's volumes and work out the process that stands for it.

    Args:
        host: the machine.
        pod: the pod.
        container: one of its containers.
        folder: where this run will live; not made here.
        observed: what was read for it.

    Raises:
        ConfigError: it cannot be made yet; the message says why.
        LocalRunError: no port is free.
    """
    pod = with_addresses(pod, host.settings.host_ip)
    # In a network of its own a job keeps its ports, and its hosts file has its names.
    pattern = None if host.has_networks else names.build_name_pattern(pod)
    own = _build_own(host, pod, container, observed.sources)
    words = build_command(container, own)
    port_map = {} if host.has_networks else _map_ports(host, pod, observed.sources, pattern)

    def rewrite(text: str) -> str:
        return names.rewrite_names(ports.rewrite_ports(text, port_map), pattern)

    volume_folders = _ensure_volumes(host, pod, observed, rewrite)
    mounts = volumes.plan_mounts(container, volume_folders, own)
    volumes.ensure_sub_paths(mounts)
    variables = ports.rewrite_port_variables(own, port_map)
    variables = {key: names.rewrite_names(value, pattern) for key, value in variables.items()}
    words = tuple(
        names.rewrite_names(word, pattern) for word in ports.rewrite_port_words(words, port_map)
    )
    namespace = _plan_namespace(host, pod, mounts, folder, observed.siblings)
    move = _build_moves(container, () if namespace else mounts, folder)
    agent = mpi.find_agent_variables(
        own, host.mpi_agent, user=os.getuid(), has_namespaces=bool(namespace)
    )
    env = (
        _machine_variables(host, pod)
        | agent
        | {key: move(value) for key, value in variables.items()}
    )
    env["TRAINWRIGHT_TERMINATION_LOG"] = str(folder / TERMINATION_LOG)
    if not namespace and any(not volumes.is_in_place(mount) for mount in mounts):
        env["TRAINWRIGHT_MOUNTS"] = volumes.render_mounts(mounts)
    stands_in = JOBSET_NAME_LABEL in labels_of(pod) and mpi.is_ssh_server(words)
    cwd = _find_working_folder(pod, container, mounts, move, has_namespace=bool(namespace))
    spec: dict[str, Any] = {
        "argv": list(mpi.STAND_IN) if stands_in else [move(word) for word in words],
        "standsIn": stands_in,
        "env": env,
        "cwd": cwd or _ensure_scratch(host, pod),
        "maxLogBytes": host.settings.max_log_bytes,
        "maxLogFiles": host.settings.max_log_files,
        "memoryBytes": _find_limit(container, "memory"),
    }
    if namespace:
        spec["namespace"] = namespace
    _write_address(host, pod)
    lost = "" if cwd else annotations_of(pod).get(WORKING_DIR_ANNOTATION, "")
    return Prepared(spec=spec, port_map=port_map, lost_folder=lost)


def _write_address(host: Host, pod: Object) -> None:
    """Leave word of the pod's name where `rsh` looks for it."""
    folder = host.folders_of(uid_of(pod)).pod
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / rsh.HOST_FILE).write_text(names.hostname_of(pod), encoding="utf-8")
    (folder / rsh.GROUP_FILE).write_text(ports.job_key_of(pod), encoding="utf-8")


def _build_own(
    host: Host, pod: Object, container: Mapping[str, Any], sources: Sources
) -> dict[str, str]:
    base = build_service_variables(host.settings.api_host, host.settings.api_port)
    return build_environment(pod, container, sources, base=base, allocatable=host.capacity)


def _map_ports(
    host: Host, pod: Object, sources: Sources, pattern: re.Pattern[str] | None
) -> Mapping[int, int]:
    declared: set[int] = set()
    for container in (*inits_of(pod), *mains_of(pod)):
        try:
            own = _build_own(host, pod, container, sources)
            words = build_command(container, own)
        except ConfigError:
            # Told when that container itself is prepared.
            continue
        declared |= ports.find_declared_ports(own, words, pattern)
    return host.ports.map_ports(ports.job_key_of(pod), declared)


def _ensure_volumes(
    host: Host, pod: Object, observed: Observed, rewrite: Rewrite
) -> dict[str, Path]:
    own = host.folders_of(uid_of(pod))
    folders = volumes.VolumeFolders(
        pod=own.pod / "volumes", memory=own.memory, claims=host.claims_folder()
    )
    made = {}
    for volume in dig(pod, "spec", "volumes", default=[]):
        files = volumes.build_files(pod, volume, observed.sources, host.capacity, observed.tokens)
        made[volume["name"]] = volumes.ensure_volume(
            volume, files, folders, rewrite, observed.claims
        )
    return made


def _plan_namespace(
    host: Host,
    pod: Object,
    mounts: Sequence[volumes.Mount],
    folder: Path,
    siblings: Sequence[str],
) -> dict[str, Any] | None:
    moved = [mount for mount in mounts if not volumes.is_in_place(mount)]
    if not host.has_namespaces:
        return None
    has_names = bool(dig(pod, "spec", "subdomain")) or bool(dig(pod, "spec", "hostAliases"))
    if not (moved or has_names or host.has_networks):
        return None
    own = host.folders_of(uid_of(pod))
    stage = own.pod / "stage"
    stage.mkdir(parents=True, exist_ok=True, mode=0o700)
    entries = [
        {"source": str(m.source), "target": m.target, "readOnly": m.read_only} for m in moved
    ]
    if os.path.isfile("/etc/hosts") and all(m.target != "/etc/hosts" for m in moved):
        hosts = own.pod / "hosts"
        hosts.write_text(names.build_hosts(pod, siblings), encoding="utf-8")
        hosts.chmod(0o644)
        entries.append({"source": str(hosts), "target": "/etc/hosts", "readOnly": False})
    plan = {"stage": str(stage), "hostname": names.hostname_of(pod), "mounts": entries}
    if host.has_networks:
        network = host.network_file(ports.job_key_of(pod))
        network.parent.mkdir(exist_ok=True, mode=0o700)
        plan["network"] = str(network)
    return plan


def _build_moves(
    container: Mapping[str, Any], mounts: Sequence[volumes.Mount], folder: Path
) -> Rewrite:
    path = container.get("terminationMessagePath") or DEFAULT_TERMINATION_PATH
    return volumes.build_path_rewrite((*mounts, volumes.Mount(folder / TERMINATION_LOG, path)))


def _machine_variables(host: Host, pod: Object) -> dict[str, str]:
    variables = {key: value for key, value in os.environ.items() if INHERITED.match(key)}
    search = variables.get("PATH") or os.defpath
    variables["PATH"] = f"{host.settings.python.parent}{os.pathsep}{search}"
    variables["TRAINWRIGHT_JOB"] = ports.job_key_of(pod)
    variables["TRAINWRIGHT_ATTEMPT"] = str(attempt_of(pod))
    variables["HOSTNAME"] = names.hostname_of(pod)
    return variables | DEFAULT_VARIABLES


def _find_working_folder(
    pod: Object,
    container: Mapping[str, Any],
    mounts: Sequence[volumes.Mount],
    move: Rewrite,
    *,
    has_namespace: bool,
) -> str:
    """The folder that the container names, or its job was submitted from; none where both lack."""
    asked = container.get("workingDir") or ""
    if asked:
        is_mounted = has_namespace and any(
            asked == mount.target or asked.startswith(mount.target + "/") for mount in mounts
        )
        moved = move(asked)
        if is_mounted or os.path.isdir(moved):
            return moved
    submitted = annotations_of(pod).get(WORKING_DIR_ANNOTATION, "")
    return submitted if submitted and os.path.isdir(submitted) else ""


def _ensure_scratch(host: Host, pod: Object) -> str:
    work = host.folders_of(uid_of(pod)).work
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    return str(work)


def _find_limit(container: Mapping[str, Any], resource: str) -> int:
    text = dig(container, "resources", "limits", resource)
    return int(parse_quantity(text)) if text else 0


def ensure_group(
    host: Host, prepared: Prepared, container: Mapping[str, Any], container_id: str
) -> dict[str, Any]:
    """The spec with the container's group in it, where the system lets us make one."""
    spec = dict(prepared.spec)
    spec["env"] = spec["env"] | {MARKER: container_id}
    if host.cgroups is None:
        return spec
    cpu = dig(container, "resources", "limits", "cpu")
    try:
        group = host.cgroups.ensure_group(
            container_id.removeprefix("trainwright://"),
            memory_bytes=int(spec["memoryBytes"]),
            cpu_cores=float(parse_quantity(cpu)) if cpu else 0.0,
        )
    except OSError as error:
        logger.info("no control group for a container: %s", error)
        return spec
    has_memory = "memory" in host.cgroups.controllers
    return spec | {"cgroup": str(group), "memoryInCgroup": has_memory}


def explain_start_error(spec: Mapping[str, Any], message: str) -> str:
    """A start error as its user can act on it."""
    program = spec["argv"][0]
    search = spec["env"].get("PATH", os.defpath)
    if "No such file" in message and shutil.which(program, path=search) is None:
        hint = PROGRAM_HINTS.get(
            os.path.basename(program), "install it, or correct command in the container"
        )
        return f'exec: "{program}": executable file not found in $PATH; {hint}'
    return f'cannot start "{program}" in "{spec["cwd"]}": {message}'
