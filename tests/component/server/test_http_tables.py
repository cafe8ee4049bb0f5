"""What kubectl's tables say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainwright.api import kinds
from trainwright.server.requests import ServedKind
from trainwright.server.tablecells import (
    render_completions,
    render_job_duration,
    render_job_status,
    summarise_pod,
)
from trainwright.server.tables import build_row, find_columns

NOW = datetime(2026, 1, 1, 1, 0, 0, tzinfo=UTC)
START = "2026-01-01T00:00:00Z"
RUNNING = {"state": {"running": {"startedAt": START}}, "ready": True}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}


def _pod(
    *statuses: dict[str, Any],
    phase: str = "Running",
    init: list[dict[str, Any]] | None = None,
    sidecar: bool = False,
    **metadata: Any,
) -> dict[str, Any]:
    init = init or []
    policy = {"restartPolicy": "Always"} if sidecar else {}
    return {
        "metadata": {"name": "p", "creationTimestamp": START, **metadata},
        "spec": {
            "containers": [{"name": f"c{i}"} for i in range(len(statuses) or 1)],
            "initContainers": [{"name": f"i{i}", **policy} for i in range(len(init))],
        },
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": f"c{i}", **s} for i, s in enumerate(statuses)],
            "initContainerStatuses": [{"name": f"i{i}", **s} for i, s in enumerate(init)],
        },
    }


def _waiting(reason: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason}}}


def _exited(code: int, **more: Any) -> dict[str, Any]:
    return {"state": {"terminated": {"exitCode": code, **more}}}


@pytest.mark.parametrize(
    ("pod", "ready", "status"),
    [
        pytest.param(_pod(RUNNING), "1/1", "Running", id="running"),
        pytest.param(_pod(phase="Pending"), "0/1", "Pending", id="not started"),
        pytest.param(
            _pod(_waiting("ContainerCreating"), phase="Pending"), "0/1", "ContainerCreating", id="waiting"
        ),
        pytest.param(_pod(DONE, phase="Succeeded"), "0/1", "Completed", id="done"),
        pytest.param(_pod(_exited(3), phase="Failed"), "0/1", "ExitCode:3", id="exit code"),
        pytest.param(_pod(_exited(137, signal=9), phase="Failed"), "0/1", "Signal:9", id="signal"),
        pytest.param(
            _pod(_exited(1, reason="Error"), RUNNING), "1/2", "Error", id="earlier container wins"
        ),
        pytest.param(_pod(DONE, RUNNING), "1/2", "NotReady", id="one done, Pod not ready"),
        pytest.param(
            _pod(_waiting("PodInitializing"), init=[RUNNING], phase="Pending"), "0/1", "Init:0/1", id="init runs"
        ),
        pytest.param(
            _pod(init=[DONE, _exited(1, reason="Error")], phase="Pending"), "0/1", "Init:Error", id="init failed"
        ),
        pytest.param(
            _pod(init=[_exited(4)], phase="Pending"), "0/1", "Init:ExitCode:4", id="init exit code"
        ),
        pytest.param(
            _pod(init=[_waiting("CrashLoopBackOff")], phase="Pending"), "0/1", "Init:CrashLoopBackOff", id="init back-off"
        ),
        pytest.param(
            _pod(RUNNING, init=[{**RUNNING, "started": True}], sidecar=True), "2/2", "Running", id="sidecar counts"
        ),
        pytest.param(_pod(RUNNING, deletionTimestamp=START), "1/1", "Terminating", id="going"),
        pytest.param(
            _pod(DONE, phase="Succeeded", deletionTimestamp=START), "0/1", "Completed", id="done and going"
        ),
    ],
)  # fmt: skip
def test_pod_summary(pod: dict[str, Any], ready: str, status: str) -> None:
    summary = summarise_pod(pod)
    assert (summary.ready, summary.status) == (ready, status)


def _cells(kind: kinds.Kind, obj: dict[str, Any], **served: Any) -> dict[str, Any]:
    columns = find_columns(ServedKind(kind=kind, schema=None, custom=False, **served))
    row = build_row(columns, obj, NOW, "None")
    assert "object" not in row
    return dict(zip([column.name for column in columns], row["cells"], strict=True))


def test_pod_restarts_say_when_the_last_was() -> None:
    last = {"terminated": {"finishedAt": "2026-01-01T00:55:00Z"}}
    cells = _cells(kinds.POD, _pod({**RUNNING, "restartCount": 2, "lastState": last}))
    assert cells["Restarts"] == "2 (5m ago)"
    assert cells["Age"] == "60m"


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([], "Running"),
        (["Suspended"], "Suspended"),
        (["SuccessCriteriaMet"], "SuccessCriteriaMet"),
        (["SuccessCriteriaMet", "Complete"], "Complete"),
        (["FailureTarget", "Failed"], "Failed"),
    ],
)
def test_job_status(conditions: list[str], status: str) -> None:
    found = [{"type": name, "status": "True"} for name in conditions]
    assert render_job_status({"metadata": {}, "status": {"conditions": found}}) == status


@pytest.mark.parametrize(
    ("spec", "text"),
    [({"completions": 3}, "1/3"), ({}, "1/1"), ({"parallelism": 4}, "1/1 of 4")],
)
def test_job_completions(spec: dict[str, int], text: str) -> None:
    assert render_completions({"spec": spec, "status": {"succeeded": 1}}) == text


def test_job_duration_ends_with_the_job() -> None:
    job = {"status": {"startTime": START, "completionTime": "2026-01-01T00:01:05Z"}}
    assert render_job_duration(job, NOW) == "65s"
    assert render_job_duration({"status": {"startTime": START}}, NOW) == "60m"
    assert render_job_duration({"status": {}}, NOW) == ""


def test_event_service_node_and_secret_rows() -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "lastTimestamp": "2026-01-01T00:59:00Z",
        "message": "hello\n",
    }
    cells = _cells(kinds.EVENT, event)
    assert (cells["Last Seen"], cells["Object"], cells["Message"]) == ("60s", "pod/p", "hello")
    service = {
        "spec": {
            "clusterIP": "None",
            "ports": [{"port": 80}, {"port": 1, "nodePort": 2, "protocol": "UDP"}],
        }
    }
    cells = _cells(kinds.SERVICE, service)
    assert (cells["Cluster-IP"], cells["Port(s)"]) == ("None", "80/TCP,1:2/UDP")
    node = {
        "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    cells = _cells(kinds.NODE, node)
    assert (cells["Status"], cells["Roles"]) == ("Ready,SchedulingDisabled", "worker")
    assert _cells(kinds.SECRET, {"type": "Opaque", "data": {"a": "", "b": ""}})["Data"] == 2


def test_custom_kinds_show_their_printer_columns() -> None:
    columns = [
        {"name": "State", "type": "string", "jsonPath": ".status.state"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    obj = {"metadata": {"name": "t", "creationTimestamp": START}}
    cells = _cells(kinds.TRAINJOB, obj, printer_columns=columns)
    assert cells == {"Name": "t", "State": None, "Age": "60m"}
    assert _cells(kinds.TRAINJOB, obj) == {"Name": "t", "Age": "60m"}


def test_every_builtin_kind_has_columns_and_survives_an_empty_object() -> None:
    for kind in kinds.KINDS:
        columns = find_columns(ServedKind(kind=kind, schema=None, custom=False))
        row = build_row(columns, {}, NOW, "Metadata")
        assert len(row["cells"]) == len(columns)
        assert row["object"]["kind"] == "PartialObjectMetadata"
