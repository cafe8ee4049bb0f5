"""The status server against a real API server: real tokens, real reviews, a real apply."""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.processes import find_free_ports, stop, wait_ready
from tests.component.manager.conftest import TRAINWRIGHT, make_configuration
from tests.support.planes import make_trainjob, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.api_lane import ApiLane

TIME = "2026-01-01T00:00:00Z"
NAMESPACE = "progress"


class StatusServer:
    """`trainwright controller --serve status`, and the pods that post to it."""

    def __init__(self, lane: ApiLane, port: int) -> None:
        self.lane = lane
        self.port = port

    def token(self, job: str, pod: str = "", audience: str = "") -> str:
        wanted = audience or self.path(job).removeprefix("/apis/")
        bound = ["--bound-object-kind=Pod", f"--bound-object-name={pod}"] if pod else []
        words = ["create", "token", "default", "-n", NAMESPACE, f"--audience={wanted}", *bound]
        return self.lane.kubectl(*words).strip()

    @staticmethod
    def path(job: str) -> str:
        group = "/apis/trainer.kubeflow.org/v1alpha1"
        return f"{group}/namespaces/{NAMESPACE}/trainjobs/{job}/status"

    def post(self, job: str, token: str, **status: Any) -> int:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # its certificate is one of its own here
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{self.path(job)}",
            json.dumps({"trainerStatus": {"lastUpdatedTime": TIME} | status}).encode(),
            {"Authorization": f"Bearer {token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def trainer_status(self, job: str) -> Any:
        found = self.lane.get("trainjob", job, "-n", NAMESPACE)
        return found.get("status", {}).get("trainerStatus")


@pytest.fixture(scope="module")
def server(lane: ApiLane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StatusServer]:
    folder = tmp_path_factory.mktemp("status")
    (port,) = find_free_ports(1)
    lane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    process = start_manager(lane, folder, port)
    made = StatusServer(lane, port)
    wait_ready(
        lambda: lane.probe(f"https://127.0.0.1:{port}/") or is_listening(port),
        process,
        folder / "log",
        "the status server",
    )
    yield made
    stop(process)


def is_listening(port: int) -> bool:
    import socket

    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def start_manager(lane: ApiLane, folder: Path, port: int) -> subprocess.Popen[bytes]:
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(make_configuration(statusServer={"port": port})))
    command = [
        *(str(TRAINWRIGHT), "controller", "--serve", "status", "--config", str(config)),
        *("--kubeconfig", str(lane.kubeconfig), "--feature-gates", "TrainJobStatus=true"),
        *("--status-host", "127.0.0.1", "--cert-dir", str(folder / "none")),
    ]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def make_job_with_pod(lane: ApiLane, name: str) -> str:
    pod = f"{name}-node-0-0"
    job = make_trainjob(name, ["true"])
    job["metadata"]["namespace"] = NAMESPACE
    wait_until(
        lambda: lane.get("serviceaccounts", "", "-n", NAMESPACE)["items"], "the default account"
    )
    lane.apply(
        job,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod,
                "namespace": NAMESPACE,
                "labels": {"jobset.sigs.k8s.io/jobset-name": name},
            },
            "spec": {"containers": [{"name": "node", "image": "i"}]},
        },
    )
    return pod


def test_a_pod_of_the_job_reports_and_nobody_else(server: StatusServer) -> None:
    pod = make_job_with_pod(server.lane, "mine")
    other = make_job_with_pod(server.lane, "other")
    assert server.post("mine", server.token("mine")) == 403, "a token without a pod"
    assert server.post("mine", server.token("mine", other)) == 403, "a pod of another job"
    assert server.post("mine", server.token("mine", pod, "https://else")) == 403, "an audience"
    assert server.post("mine", server.lane.token) == 403, "the admin"
    assert server.post("mine", server.token("mine", pod), progressPercentage=101) == 422
    assert server.trainer_status("mine") is None
    assert server.post("mine", server.token("mine", pod), progressPercentage=40) == 200
    wait_until(lambda: server.trainer_status("mine"), "the progress")
    assert server.trainer_status("mine") == {"progressPercentage": 40, "lastUpdatedTime": TIME}
    managed = server.lane.get("trainjob", "mine", "-n", NAMESPACE, "--show-managed-fields")
    managers = {e["manager"]: e for e in managed["metadata"]["managedFields"]}
    assert managers["trainer-status"]["operation"] == "Apply"
    assert managers["trainer-status"]["subresource"] == "status"


def test_a_job_that_took_the_name_does_not_get_the_progress_of_the_one_before(
    server: StatusServer,
) -> None:
    pod = make_job_with_pod(server.lane, "again")
    token = server.token("again", pod)
    assert server.post("again", token, progressPercentage=10) == 200
    wait_until(lambda: server.trainer_status("again"), "the progress")
    server.lane.kubectl("delete", "trainjob", "again", "-n", NAMESPACE)
    job = make_trainjob("again", ["true"])
    job["metadata"]["namespace"] = NAMESPACE
    server.lane.apply(job)
    # Taken for the old one, which is remembered for a moment, and dropped when it is written.
    assert server.post("again", token, progressPercentage=100) == 200
    wait_until(lambda: server.post("again", token, progressPercentage=100) == 200, "the new one")
    wait_until(lambda: server.trainer_status("again"), "its progress")
