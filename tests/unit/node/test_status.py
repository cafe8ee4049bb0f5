from __future__ import annotations

from typing import Any

import pytest

from trainwright.base.objects import Object, find_condition
from trainwright.node.status import (
    ContainerState,
    Running,
    Terminated,
    Waiting,
    find_backoff_s,
    has_restart,
    initial_states,
    reduce_phase,
    reduce_status,
)

NOW = "2026-11-30T10:00:00Z"
WAITING = ContainerState(state=Waiting(reason="ContainerCreating"))
RUNNING = ContainerState(state=Running(started_at=NOW), started=True, ready=True)
UNREADY = ContainerState(state=Running(started_at=NOW), started=True)
DONE = ContainerState(state=Terminated(exit_code=0, reason="Completed"))
FAILED = ContainerState(state=Terminated(exit_code=1, reason="Error"))
AGAIN = ContainerState(state=Terminated(exit_code=1, reason="Error"), will_restart=True)
LOOPING = ContainerState(
    state=Waiting(reason="CrashLoopBackOff"),
    last=Terminated(exit_code=1, reason="Error"),
    will_restart=True,
)


def make_pod(mains: str = "a", inits: str = "", sidecars: str = "", **more: Any) -> Object:
    rows: list[Object] = [{"name": name} for name in inits]
    rows += [{"name": name, "restartPolicy": "Always"} for name in sidecars]
    spec: Object = {"containers": [{"name": name} for name in mains], "restartPolicy": "Never"}
    if rows:
        spec["initContainers"] = rows
    return {"metadata": {"name": "p"}, "spec": spec | more, "status": {}}


@pytest.mark.parametrize(
    ("pod", "states", "killed", "phase"),
    [
        (make_pod(), {"a": WAITING}, False, "Pending"),
        (make_pod(), {"a": RUNNING}, False, "Running"),
        (make_pod("ab"), {"a": RUNNING, "b": WAITING}, False, "Pending"),
        (make_pod("ab"), {"a": RUNNING, "b": FAILED}, False, "Running"),
        (make_pod("ab"), {"a": DONE, "b": DONE}, False, "Succeeded"),
        (make_pod("ab"), {"a": DONE, "b": FAILED}, False, "Failed"),
        (make_pod(), {"a": AGAIN}, False, "Running"),
        (make_pod(), {"a": LOOPING}, False, "Running"),
        (make_pod(), {"a": LOOPING}, True, "Failed"),
        (make_pod(), {"a": WAITING}, True, "Failed"),
        (make_pod(), {"a": DONE}, True, "Succeeded"),
        (make_pod(inits="i"), {"i": RUNNING, "a": WAITING}, False, "Pending"),
        (make_pod(inits="i"), {"i": FAILED, "a": WAITING}, False, "Failed"),
        (make_pod(inits="i"), {"i": AGAIN, "a": WAITING}, False, "Pending"),
        (make_pod(inits="i"), {"i": LOOPING, "a": WAITING}, False, "Pending"),
        (make_pod(inits="i"), {"i": DONE, "a": RUNNING}, False, "Running"),
        (make_pod(sidecars="s"), {"s": RUNNING, "a": DONE}, False, "Running"),
        (make_pod(sidecars="s"), {"s": FAILED, "a": DONE}, False, "Succeeded"),
        (make_pod(sidecars="s"), {"s": RUNNING, "a": WAITING}, False, "Pending"),
    ],
)
def test_phase(pod: Object, states: dict[str, ContainerState], killed: bool, phase: str) -> None:
    assert reduce_phase(pod, states, killed=killed) == phase


@pytest.mark.parametrize(
    ("policy", "own", "code", "is_init", "expected"),
    [
        ("Never", None, 1, False, False),
        ("OnFailure", None, 1, False, True),
        ("OnFailure", None, 0, False, False),
        ("Always", None, 0, False, True),
        ("Always", None, 0, True, False),
        ("Always", None, 1, True, True),
        ("Never", "Always", 0, True, True),
        ("Never", "OnFailure", 1, False, True),
    ],
)
def test_restart_policy(
    policy: str, own: str | None, code: int, is_init: bool, expected: bool
) -> None:
    container = {"name": "a"} | ({"restartPolicy": own} if own else {})
    pod = make_pod(restartPolicy=policy)
    assert has_restart(pod, container, code, is_init=is_init) is expected


def test_backoff_starts_at_once_and_doubles_to_its_cap() -> None:
    waits = [find_backoff_s(n, base_s=10, cap_s=300) for n in range(1, 9)]
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]


def reduce(pod: Object, states: dict[str, ContainerState], **more: Any) -> Object:
    return reduce_status(pod, states, now=NOW, host_ip="127.0.0.1", **more)


def test_every_container_status_has_what_clients_insist_on() -> None:
    pod = make_pod(inits="i")
    status = reduce(pod, initial_states(pod))
    rows = status["containerStatuses"] + status["initContainerStatuses"]
    for row in rows:
        assert {"name", "image", "imageID", "ready", "restartCount"} <= set(row)
        assert row["state"] == {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("states", "more", "ready"),
    [
        ({"a": RUNNING}, {}, ("True", None)),
        ({"a": UNREADY}, {}, ("False", "ContainersNotReady")),
        ({"a": DONE}, {}, ("False", "PodCompleted")),
        ({"a": FAILED}, {}, ("False", "PodFailed")),
        ({"a": RUNNING}, {"readinessGates": [{"conditionType": "x"}]}, ("False", "ReadinessGatesNotReady")),
    ],
)  # fmt: skip
def test_ready_condition(
    states: dict[str, ContainerState], more: Object, ready: tuple[str, str | None]
) -> None:
    pod = make_pod(**more)
    condition = find_condition({"status": reduce(pod, states)}, "Ready")
    assert condition is not None
    assert (condition["status"], condition.get("reason")) == ready


def test_conditions_of_others_and_times_of_unchanged_ones_are_kept() -> None:
    pod = make_pod()
    old = "2026-01-01T00:00:00Z"
    pod["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": old},
        {"type": "DisruptionTarget", "status": "True", "reason": "x", "lastTransitionTime": old},
        {"type": "Ready", "status": "False", "lastTransitionTime": old},
    ]
    status = {"status": reduce(pod, {"a": RUNNING})}
    for kind, since in (("PodScheduled", old), ("DisruptionTarget", old), ("Ready", NOW)):
        condition = find_condition(status, kind)
        assert condition is not None
        assert condition["lastTransitionTime"] == since


def test_terminal_phase_waits_for_the_last_process() -> None:
    pod = make_pod()
    assert reduce(pod, {"a": DONE}, is_over=False)["phase"] == "Running"
    assert reduce(pod, {"a": DONE}, is_over=True)["phase"] == "Succeeded"


def test_deadline_fails_even_a_pod_that_ended_well() -> None:
    status = reduce(make_pod(), {"a": DONE}, killed=True, reason="DeadlineExceeded", message="m")
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
