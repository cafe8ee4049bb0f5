"""How single cells of kubectl's tables read: ages, a pod's status, a job's duration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.base.objects import ObjectView, dig, is_condition_true
from trainwright.base.times import parse_time
from trainwright.schema.columns import render_age

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

UNKNOWN = "<unknown>"
ROLE_PREFIX = "node-role.kubernetes.io/"


def render_since(timestamp: str, now: datetime) -> str:
    """How long ago a wire time was; `<unknown>` without one."""
    try:
        return render_age((now - parse_time(timestamp)).total_seconds())
    except (ValueError, TypeError):
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class PodSummary:
    """What the columns of one pod say."""

    ready: str
    status: str
    restarts: int
    last_restart: str
    """Wire time of the newest restart, or empty."""


def summarise_pod(pod: ObjectView) -> PodSummary:
    """The Ready, Status and Restarts of a pod, as kubectl users know them.

    Source: Kubernetes' pod printer; Differs: none known.
    """
    sidecars = {
        container["name"]
        for container in dig(pod, "spec", "initContainers", default=[])
        if container.get("restartPolicy") == "Always"
    }
    init_statuses = dig(pod, "status", "initContainerStatuses", default=[])
    statuses = dig(pod, "status", "containerStatuses", default=[])
    status = dig(pod, "status", "reason") or dig(pod, "status", "phase", default="Unknown")
    initializing, init_text = _find_init_text(pod, init_statuses, sidecars)
    status = init_text if initializing else _find_main_text(pod, statuses, status)
    counted = [s for s in init_statuses if s.get("name") in sidecars] + list(statuses)
    restarted = list(init_statuses) if initializing else counted
    total = len(dig(pod, "spec", "containers", default=[])) + len(sidecars)
    ready = sum(1 for s in counted if s.get("ready") and dig(s, "state", "running") is not None)
    if dig(pod, "metadata", "deletionTimestamp") and not _is_terminal(pod):
        status = "Unknown" if dig(pod, "status", "reason") == "NodeLost" else "Terminating"
    return PodSummary(
        f"{ready}/{total}",
        str(status),
        sum(int(s.get("restartCount") or 0) for s in restarted),
        max(
            (dig(s, "lastState", "terminated", "finishedAt", default="") for s in restarted),
            default="",
        ),
    )


def _is_terminal(pod: ObjectView) -> bool:
    return dig(pod, "status", "phase") in {"Succeeded", "Failed"}


def _find_init_text(
    pod: ObjectView, statuses: Sequence[Mapping[str, Any]], sidecars: set[str]
) -> tuple[bool, str]:
    total = len(dig(pod, "spec", "initContainers", default=[]))
    for index, status in enumerate(statuses):
        if dig(status, "state", "terminated", "exitCode", default=-1) == 0:
            continue
        if status.get("name") in sidecars and status.get("started"):
            continue
        terminated = dig(status, "state", "terminated")
        if terminated is not None:
            return True, "Init:" + _terminated_text(terminated)
        waiting = dig(status, "state", "waiting", "reason", default="")
        if waiting and waiting != "PodInitializing":
            return True, f"Init:{waiting}"
        return True, f"Init:{index}/{total}"
    return False, ""


def _terminated_text(state: Mapping[str, Any]) -> str:
    if state.get("reason"):
        return str(state["reason"])
    if state.get("signal"):
        return f"Signal:{state['signal']}"
    return f"ExitCode:{state.get('exitCode', 0)}"


def _find_main_text(pod: ObjectView, statuses: Sequence[Mapping[str, Any]], status: str) -> str:
    has_running = False
    for container in reversed(statuses):
        waiting = dig(container, "state", "waiting", "reason")
        terminated = dig(container, "state", "terminated")
        if waiting:
            status = waiting
        elif terminated is not None:
            status = _terminated_text(terminated)
        elif container.get("ready") and dig(container, "state", "running") is not None:
            has_running = True
    if status == "Completed" and has_running:
        return "Running" if is_condition_true(pod, "Ready") else "NotReady"
    return status


def render_restarts(summary: PodSummary, now: datetime) -> str:
    """`3 (5m ago)`, or `0`."""
    if summary.restarts and summary.last_restart:
        return f"{summary.restarts} ({render_since(summary.last_restart, now)} ago)"
    return str(summary.restarts)


def render_job_status(job: ObjectView) -> str:
    """The one word for a Job, the most final first."""
    if is_condition_true(job, "Complete"):
        return "Complete"
    if is_condition_true(job, "Failed"):
        return "Failed"
    if dig(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_condition_true(job, condition):
            return condition
    return "Running"


def render_completions(job: ObjectView) -> str:
    """`1/3`; without a wanted number `0/1`, or `0/1 of 4` when several run at once."""
    succeeded = dig(job, "status", "succeeded", default=0)
    wanted = dig(job, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = dig(job, "spec", "parallelism", default=1)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def render_job_duration(job: ObjectView, now: datetime) -> str:
    """From start to completion, or to now while it runs; empty before it started."""
    start = dig(job, "status", "startTime")
    if not start:
        return ""
    failed_at = next(
        (
            c.get("lastTransitionTime")
            for c in dig(job, "status", "conditions", default=[])
            if c.get("type") == "Failed" and c.get("status") == "True"
        ),
        None,
    )
    end = dig(job, "status", "completionTime") or failed_at
    try:
        return render_age(((parse_time(end) if end else now) - parse_time(start)).total_seconds())
    except ValueError:
        return UNKNOWN


def count_data(obj: ObjectView) -> int:
    """Entries of a ConfigMap or Secret."""
    return len(dig(obj, "data", default={})) + len(dig(obj, "binaryData", default={}))


def render_pairs(pairs: Mapping[str, Any]) -> str:
    """`a=b,c=d`, or `<none>`."""
    return ",".join(f"{key}={value}" for key, value in sorted(pairs.items())) or "<none>"


def render_selector(selector: Mapping[str, Any]) -> str:
    """A label selector with its labels and expressions."""
    texts = [f"{k}={v}" for k, v in sorted(selector.get("matchLabels", {}).items())]
    for expression in selector.get("matchExpressions", []):
        key, operator = expression.get("key", ""), expression.get("operator", "")
        values = ",".join(expression.get("values") or [])
        texts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }.get(operator, key)
        )
    return ",".join(texts) or "<none>"


def render_ports(ports: Sequence[Mapping[str, Any]]) -> str:
    """`80/TCP,443:30443/TCP`, or `<none>`."""
    texts = []
    for port in ports:
        outer = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port')}{outer}/{port.get('protocol') or 'TCP'}")
    return ",".join(texts) or "<none>"


def render_roles(labels: Mapping[str, str]) -> str:
    """The roles in a node's labels, or `<none>`."""
    roles = sorted(
        label.removeprefix(ROLE_PREFIX) for label in labels if label.startswith(ROLE_PREFIX)
    )
    return ",".join(roles) or "<none>"
