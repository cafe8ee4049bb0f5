"""What a pod's status says, as pure functions of what its containers did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.api.conditions import (
    POD_CONTAINERS_READY,
    POD_DISRUPTION_TARGET,
    POD_INITIALIZED,
    POD_READY,
    POD_READY_TO_START,
    POD_SCHEDULED,
)
from trainwright.base.objects import Object, ObjectView, dig, find_condition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
CRASH_LOOP = "CrashLoopBackOff"
CONFIG_ERROR = "CreateContainerConfigError"
STATUS_UNKNOWN = "ContainerStatusUnknown"
LAST_WORDS = 500
"""Characters of a termination message that an event repeats; its note holds 1024."""
SIGKILL_EXIT_CODE = 137
TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})
TERMINATED = "Terminated"
"""Reason of a pod that ends because its node does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Not running; `reason` says what for."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A process runs since `started_at` (RFC 3339)."""

    started_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminated:
    """One instance ended."""

    exit_code: int
    reason: str
    message: str = ""
    signal: int = 0
    started_at: str = ""
    finished_at: str = ""
    container_id: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """One container as its pod's status shows it."""

    state: State
    last: Terminated | None = None
    restarts: int = 0
    container_id: str = ""
    started: bool = False
    """Runs and its startup probe has passed."""
    ready: bool = False
    """Its readiness probe says so; without one, the same as `started`."""
    will_restart: bool = False
    """Ended, and another instance follows."""


def initial_states(pod: ObjectView) -> dict[str, ContainerState]:
    """Every container before anything has run."""
    reason = INITIALIZING if dig(pod, "spec", "initContainers") else CREATING
    waiting = ContainerState(state=Waiting(reason=reason))
    return {container["name"]: waiting for container in (*inits_of(pod), *mains_of(pod))}


def mains_of(pod: ObjectView) -> Sequence[Mapping[str, Any]]:
    """`spec.containers`."""
    containers: Sequence[Mapping[str, Any]] = dig(pod, "spec", "containers", default=[])
    return containers


def inits_of(pod: ObjectView) -> Sequence[Mapping[str, Any]]:
    """`spec.initContainers`, sidecars included."""
    containers: Sequence[Mapping[str, Any]] = dig(pod, "spec", "initContainers", default=[])
    return containers


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Whether an init container is a restartable one."""
    return container.get("restartPolicy") == "Always"


def has_restart(
    pod: ObjectView, container: Mapping[str, Any], exit_code: int, *, is_init: bool
) -> bool:
    """Whether a container that ended with `exit_code` runs again by its policy."""
    policy = container.get("restartPolicy") or dig(pod, "spec", "restartPolicy", default="Always")
    if is_init and is_sidecar(container):
        return True
    if policy == "Always":
        # A regular init container that has done its work is done under any policy.
        return exit_code != 0 if is_init else True
    return bool(policy == "OnFailure" and exit_code != 0)


def reduce_phase(pod: ObjectView, states: Mapping[str, ContainerState], *, killed: bool) -> str:
    """The pod's phase. `killed`: it was told to end, so that nothing restarts.

    Source: contract jobset 3.1, the kubelet's getPhase.
    """
    everything = [states[c["name"]] for c in (*inits_of(pod), *mains_of(pod))]
    if any(isinstance(s.state, Running) for s in everything):
        return (
            "Running" if _is_initialized(pod, states) and _have_all_run(pod, states) else "Pending"
        )
    regular = [states[c["name"]] for c in inits_of(pod) if not is_sidecar(c)]
    if any(_has_failed(s) and not s.will_restart for s in regular):
        return "Failed"
    mains = [states[c["name"]] for c in mains_of(pod)]
    if killed:
        return "Succeeded" if all(_has_succeeded(s) for s in mains) else "Failed"
    if not _is_initialized(pod, states) or not _have_all_run(pod, states):
        return "Pending"
    if any(s.will_restart or isinstance(s.state, Waiting) for s in mains):
        return "Running"
    return "Succeeded" if all(_has_succeeded(s) for s in mains) else "Failed"


def _has_failed(state: ContainerState) -> bool:
    return isinstance(state.state, Terminated) and state.state.exit_code != 0


def _has_succeeded(state: ContainerState) -> bool:
    return isinstance(state.state, Terminated) and state.state.exit_code == 0


def _is_initialized(pod: ObjectView, states: Mapping[str, ContainerState]) -> bool:
    for container in inits_of(pod):
        state = states[container["name"]]
        if is_sidecar(container):
            has_passed = state.started or state.last is not None or _has_ended(state)
        else:
            has_passed = _has_succeeded(state)
        if not has_passed:
            return False
    return True


def _has_ended(state: ContainerState) -> bool:
    return isinstance(state.state, Terminated)


def _have_all_run(pod: ObjectView, states: Mapping[str, ContainerState]) -> bool:
    mains = (states[c["name"]] for c in mains_of(pod))
    return all(not isinstance(s.state, Waiting) or s.last is not None for s in mains)


def reduce_status(
    pod: ObjectView,
    states: Mapping[str, ContainerState],
    *,
    now: str,
    host_ip: str,
    killed: bool = False,
    reason: str = "",
    message: str = "",
    is_over: bool = True,
) -> Object:
    """The status of a pod whose containers are in `states`.

    `now` is a wire time for what changes. Conditions that others wrote are kept. `is_over` False
    holds a terminal phase back (processes are left).
    """
    phase = reduce_phase(pod, states, killed=killed)
    if reason and phase == "Succeeded" and killed:
        phase = "Failed"
    if phase in TERMINAL_PHASES and not is_over:
        phase = "Running" if _is_initialized(pod, states) else "Pending"
    status: Object = {
        "phase": phase,
        "conditions": _reduce_conditions(pod, states, phase, now),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": host_ip,
        "podIPs": [{"ip": host_ip}],
        "startTime": dig(pod, "status", "startTime", default=now),
        "containerStatuses": [
            _render_container(c, states[c["name"]], is_init=False) for c in mains_of(pod)
        ],
    }
    if inits_of(pod):
        status["initContainerStatuses"] = [
            _render_container(c, states[c["name"]], is_init=True) for c in inits_of(pod)
        ]
    generation = dig(pod, "metadata", "generation")
    if generation:
        status["observedGeneration"] = generation
    if reason:
        status |= {"reason": reason, "message": message}
    if reason == TERMINATED:
        # Not the pod's own doing: a podFailurePolicy may leave it out of the count.
        status["conditions"] = _with_disruption(pod, status["conditions"], message, now)
    return status


def _with_disruption(
    pod: ObjectView, conditions: list[Object], message: str, now: str
) -> list[Object]:
    before = find_condition(pod, POD_DISRUPTION_TARGET)
    if before is not None and before.get("status") == "True":
        return conditions
    others = [c for c in conditions if c.get("type") != POD_DISRUPTION_TARGET]
    disruption: Object = {
        "type": POD_DISRUPTION_TARGET,
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    return [*others, disruption]


def _render_container(
    container: Mapping[str, Any], state: ContainerState, *, is_init: bool
) -> Object:
    if is_init and not is_sidecar(container):
        ready = _has_succeeded(state)
    else:
        ready = isinstance(state.state, Running) and state.ready
    status: Object = {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": isinstance(state.state, Running) and state.started,
        "restartCount": state.restarts,
        "state": _render_state(state.state),
        "lastState": _render_state(state.last) if state.last else {},
    }
    if state.container_id:
        status["containerID"] = state.container_id
    return status


def _render_state(state: State) -> Object:
    if isinstance(state, Waiting):
        waiting = {"reason": state.reason}
        return {"waiting": waiting | ({"message": state.message} if state.message else {})}
    if isinstance(state, Running):
        return {"running": {"startedAt": state.started_at}}
    terminated: Object = {"exitCode": state.exit_code, "reason": state.reason}
    optional = {
        "message": state.message,
        "signal": state.signal,
        "startedAt": state.started_at,
        "finishedAt": state.finished_at,
        "containerID": state.container_id,
    }
    return {"terminated": terminated | {key: value for key, value in optional.items() if value}}


def _reduce_conditions(
    pod: ObjectView, states: Mapping[str, ContainerState], phase: str, now: str
) -> list[Object]:
    wanted = _build_conditions(pod, states, phase)
    conditions: list[Object] = []
    for condition in wanted:
        before = find_condition(pod, condition["type"])
        is_same = before is not None and before.get("status") == condition["status"]
        since = dig(before, "lastTransitionTime", default=now) if is_same else now
        conditions.append({"lastProbeTime": None, "lastTransitionTime": since, **condition})
    own = {condition["type"] for condition in wanted}
    others = dig(pod, "status", "conditions", default=[])
    return conditions + [dict(c) for c in others if c.get("type") not in own]


def _build_conditions(
    pod: ObjectView, states: Mapping[str, ContainerState], phase: str
) -> list[Object]:
    unready = _find_unready(pod, states)
    is_over = phase in TERMINAL_PHASES
    over_reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    uninitialized = [] if _is_initialized(pod, states) else _find_incomplete(pod, states)
    has_sandbox = not is_over and any(
        not isinstance(s.state, Waiting) or s.last for s in states.values()
    )
    containers_ready: Object
    if is_over:
        containers_ready = {"status": "False", "reason": over_reason}
    elif unready:
        text = f"containers with unready status: [{' '.join(unready)}]"
        containers_ready = {"status": "False", "reason": "ContainersNotReady", "message": text}
    else:
        containers_ready = {"status": "True"}
    if uninitialized and not (is_over and phase == "Succeeded"):
        text = f"containers with incomplete status: [{' '.join(uninitialized)}]"
        initialized: Object = {
            "status": "False", "reason": "ContainersNotInitialized", "message": text
        }  # fmt: skip
    else:
        initialized = {"status": "True"} | (
            {"reason": "PodCompleted"} if phase == "Succeeded" else {}
        )
    ready = _apply_gates(pod, containers_ready)
    return [
        {"type": POD_READY_TO_START, "status": "True" if has_sandbox else "False"},
        {"type": POD_INITIALIZED, **initialized},
        {"type": POD_READY, **ready},
        {"type": POD_CONTAINERS_READY, **containers_ready},
        {"type": POD_SCHEDULED, "status": "True"},
    ]


def _apply_gates(pod: ObjectView, containers_ready: Object) -> Object:
    gates = dig(pod, "spec", "readinessGates", default=[])
    missing = [
        gate["conditionType"]
        for gate in gates
        if dig(find_condition(pod, gate["conditionType"]), "status") != "True"
    ]
    if containers_ready["status"] != "True" or not missing:
        return containers_ready
    text = f'the status of pod readiness gates [{" ".join(missing)}] is not "True"'
    return {"status": "False", "reason": "ReadinessGatesNotReady", "message": text}


def _find_unready(pod: ObjectView, states: Mapping[str, ContainerState]) -> list[str]:
    sidecars = [c for c in inits_of(pod) if is_sidecar(c)]
    names = [c["name"] for c in (*sidecars, *mains_of(pod))]
    return [n for n in names if not (isinstance(states[n].state, Running) and states[n].ready)]


def _find_incomplete(pod: ObjectView, states: Mapping[str, ContainerState]) -> list[str]:
    return [
        c["name"]
        for c in inits_of(pod)
        if not (states[c["name"]].started if is_sidecar(c) else _has_succeeded(states[c["name"]]))
    ]


def lose_container(state: ContainerState, now: str) -> Terminated:
    """The end of a container whose process nobody can account for any more."""
    started_at = state.state.started_at if isinstance(state.state, Running) else ""
    return Terminated(
        exit_code=SIGKILL_EXIT_CODE,
        reason=STATUS_UNKNOWN,
        message="the process was lost; its exit code is not known",
        started_at=started_at,
        finished_at=now,
        container_id=state.container_id,
    )


def describe_exit(name: str, ended: Terminated) -> str:
    """One line on a container that ended with an error, with the end of its last words."""
    text = f"Container {name} exited with code {ended.exit_code}"
    words = " ".join(ended.message.split())[-LAST_WORDS:]
    reason = words or (ended.reason if ended.reason != "Error" else "")
    return f"{text}: {reason}" if reason else text


def find_backoff_s(failures: int, *, base_s: float, cap_s: float) -> float:
    """Wait before the restart after that many ended runs: none, base, twice base, … cap.

    Source: the kubelet's container back-off.
    """
    if failures <= 1:
        return 0.0
    return float(min(cap_s, base_s * 2 ** min(failures - 2, 30)))
