"""Names of a job's pods, as this machine must read them: every one of them is the loopback address."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from trainwright.api.env import Writer, names_written_by
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.objects import ObjectView, dig, labels_of, name_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOOPBACK = "127.0.0.1"
LOOPBACK_DEVICE = "lo0" if sys.platform == "darwin" else "lo"
CLUSTER_DOMAIN = "cluster.local"
INTERFACE_VARIABLES = tuple(
    name for name in names_written_by(Writer.NODE) if name.endswith("_SOCKET_IFNAME")
)
_LONGEST_HOSTNAME = 63


def hostname_of(pod: ObjectView) -> str:
    """`spec.hostname`, else the pod's name, cut to 63 characters."""
    name = str(dig(pod, "spec", "hostname", default="") or name_of(pod))
    return name[:_LONGEST_HOSTNAME].rstrip("-.")


def list_own_names(pod: ObjectView) -> tuple[str, ...]:
    """The names under which the cluster would find this pod, shortest last."""
    host, subdomain = hostname_of(pod), dig(pod, "spec", "subdomain", default="")
    if not subdomain:
        return (host,)
    short = f"{host}.{subdomain}"
    return (*tuple(f"{short}{suffix}" for suffix in reversed(_suffixes(namespace_of(pod)))), host)


def _suffixes(namespace: str) -> tuple[str, ...]:
    return ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.{CLUSTER_DOMAIN}")


def build_name_pattern(pod: ObjectView) -> re.Pattern[str] | None:
    """What matches the names of the pods of this pod's job; None: it has no such names.

    Names are `<jobset>-<replicated job>-<i>-<j>.<subdomain>` for pods of a JobSet and
    `<anything>.<subdomain>` for others, each with or without namespace and domain.
    """
    subdomain = dig(pod, "spec", "subdomain", default="")
    if not subdomain:
        return None
    jobset = labels_of(pod).get(JOBSET_NAME_LABEL, "")
    host = rf"{re.escape(jobset)}-[a-z0-9-]+-\d+-\d+" if jobset else re.escape(hostname_of(pod))
    namespace = re.escape(namespace_of(pod))
    tail = rf"(?:\.{namespace}(?:\.svc(?:\.{re.escape(CLUSTER_DOMAIN)})?)?)?"
    return re.compile(rf"(?<![\w.-]){host}\.{re.escape(subdomain)}{tail}(?![\w-]|\.\w)")


def rewrite_names(text: str, pattern: re.Pattern[str] | None) -> str:
    """`text` with each name of the job's pods replaced by the loopback address."""
    return pattern.sub(LOOPBACK, text) if pattern else text


def build_hosts(pod: ObjectView, siblings: Sequence[str]) -> str:
    """A hosts file for one pod: its own names, its job's other names and its `hostAliases`."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    aliases: Sequence[Mapping[str, Any]] = dig(pod, "spec", "hostAliases", default=[])
    lines += [f"{alias['ip']} {' '.join(alias.get('hostnames') or [])}" for alias in aliases]
    lines.append(f"{LOOPBACK} {' '.join(list_own_names(pod))}")
    subdomain = dig(pod, "spec", "subdomain", default="")
    for host in siblings if subdomain else ():
        names = (f"{host}.{subdomain}{suffix}" for suffix in _suffixes(namespace_of(pod)))
        lines.append(f"{LOOPBACK} {' '.join(names)} {host}")
    return "\n".join(lines) + "\n"


def list_sibling_hosts(jobset: ObjectView) -> tuple[str, ...]:
    """Host names of all pods that a JobSet will have."""
    hosts: list[str] = []
    for row in dig(jobset, "spec", "replicatedJobs", default=[]):
        replicas = dig(row, "replicas", default=1)
        template = dig(row, "template", "spec", default={})
        pods = dig(template, "completions") or dig(template, "parallelism", default=1)
        prefix = f"{name_of(jobset)}-{row['name']}"
        hosts += [f"{prefix}-{i}-{j}" for i in range(replicas) for j in range(pods)]
    return tuple(hosts)
