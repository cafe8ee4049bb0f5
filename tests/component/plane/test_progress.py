"""Progress from a running job, without any set-up: environment, token, status, CLI."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.support.planes import make_trainjob, wait_until

if TYPE_CHECKING:
    from tests.support.planes import TestPlane

POST = """
import json, os, ssl, sys, urllib.request
status = {"progressPercentage": int(sys.argv[1]), "lastUpdatedTime": "2026-01-01T00:00:00Z",
          "metrics": [{"name": "loss", "value": "0.5"}]}
token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read()
request = urllib.request.Request(
    os.environ["KUBEFLOW_TRAINER_SERVER_URL"],
    json.dumps({"trainerStatus": status}).encode(),
    {"Authorization": "Bearer " + token},
)
context = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
with urllib.request.urlopen(request, context=context) as answer:
    print(answer.status, answer.read().decode())
"""


def test_a_job_reports_its_progress(plane: TestPlane) -> None:
    plane.apply(make_trainjob("progress", [sys.executable, "-c", POST, "100"], nodes=2))
    plane.wait_condition("progress", "Complete")
    status = wait_until(
        lambda: plane.get("trainjob", "progress")["status"].get("trainerStatus"), "its progress"
    )
    assert status["progressPercentage"] == 100
    assert status["metrics"] == [{"name": "loss", "value": "0.5"}]
    assert "100" in plane.cli("ls")
    authority = plane.get("configmap", "progress-tls-config")
    assert "BEGIN CERTIFICATE" in authority["data"]["ca.crt"]
    plane.cli("rm", "progress")
    wait_until(lambda: plane.get("configmap", "progress-tls-config") is None, "nothing is left")


def test_a_job_may_not_report_for_another_one(plane: TestPlane) -> None:
    plane.apply(make_trainjob("victim", ["sleep", "300"]))
    steal = POST.replace('os.environ["KUBEFLOW_TRAINER_SERVER_URL"]', "sys.argv[2]")
    url = f"{plane.record.server}/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
    command = [sys.executable, "-c", steal, "1", f"{url}/victim/status"]
    plane.apply(make_trainjob("thief", command))
    wait_until(lambda: "403: Forbidden" in plane.cli("logs", "thief", code=None), "the refusal")
    assert "trainerStatus" not in (plane.get("trainjob", "victim").get("status") or {})
    plane.cli("rm", "victim", "thief")
