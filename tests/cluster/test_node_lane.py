"""Real containers: a Pod with an image, its log, its exit code; a JobSet whose Pods find each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.node_lane import BUSYBOX_IMAGE, NodeLane, make_node_lane

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeLane]:
    with make_node_lane(tmp_path_factory.mktemp("node"), "jobset") as running:
        yield running


def make_container(*command: str) -> dict[str, Any]:
    return {
        "name": "main",
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": list(command),
        "resources": {"requests": {"cpu": "50m"}},
    }


def test_a_pod_runs_and_its_log_is_read(node: NodeLane) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "says", "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [make_container("sh", "-c", "echo hello from $HOSTNAME; exit 7")],
        },
    }
    node.lane.apply(pod)
    ended = node.wait("pod", "says", "jsonpath={.status.phase}=Failed")
    (state,) = ended["status"]["containerStatuses"]
    assert state["state"]["terminated"]["exitCode"] == 7
    assert node.lane.kubectl("logs", "says") == "hello from says\n"
    node.lane.kubectl("delete", "pod", "says")


def test_pods_of_a_jobset_find_each_other(node: NodeLane) -> None:
    script = "until nslookup meet-node-0-0.meet.default.svc.cluster.local; do sleep 0.5; done"
    template = {
        "spec": {"restartPolicy": "Never", "containers": [make_container("sh", "-c", script)]}
    }
    job = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": template}
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "meet", "namespace": "default"},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}]},
    }
    node.lane.apply(jobset)
    node.wait("jobset", "meet", "condition=Completed")
    node.lane.kubectl("delete", "jobset", "meet")
