"""`trainwright controller` against a real API server, with the real Job and JobSet controllers."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.component.manager.conftest import (
    SHORT,
    TRAINWRIGHT,
    ManagerProcess,
    make_configuration,
    wait_until,
)
from tests.support.planes import make_runtime, make_trainjob
from trainwright.base.objects import is_condition_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.api_lane import ApiLane

SUCCEEDED = '{"status": {"phase": "Succeeded"}}'


class Site:
    """A namespace of the lane, and the managers that look after it."""

    def __init__(self, lane: ApiLane, folder: Path, namespace: str) -> None:
        self.lane = lane
        self.namespace = namespace
        self._folder = folder
        self.managers: list[ManagerProcess] = []

    def start(self) -> ManagerProcess:
        config = self._folder / "config.yaml"
        election = SHORT | {"resourceNamespace": self.namespace}
        config.write_text(yaml.safe_dump(make_configuration(leaderElection=election)))
        log_file = self._folder / f"log-{len(self.managers)}"
        command = [
            *(str(TRAINWRIGHT), "controller", "--config", str(config)),
            *("--kubeconfig", str(self.lane.kubeconfig), "--namespace", self.namespace),
            *("--cert-dir", str(self._folder / "certs")),
        ]
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder
            )
        self.managers.append(ManagerProcess(process, log_file))
        return self.managers[-1]

    def apply(self, obj: dict[str, Any]) -> None:
        obj["metadata"]["namespace"] = self.namespace
        self.lane.apply(obj)

    def list(self, kind: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.lane.get(kind, "", "-n", self.namespace)["items"]
        return items

    def trainjob(self) -> dict[str, Any]:
        return self.list("trainjobs")[0]

    def holder(self) -> str:
        lease = self.lane.get("lease", "", "-n", self.namespace)["items"]
        return str(lease[0]["spec"].get("holderIdentity") or "") if lease else ""

    def finish_pods(self) -> bool:
        """Let every Pod succeed: there is no node that would run it."""
        for pod in self.list("pods"):
            if pod.get("status", {}).get("phase") != "Succeeded":
                name = pod["metadata"]["name"]
                self.lane.kubectl(
                    *("patch", "pod", name, "-n", self.namespace),
                    *("--subresource=status", "--type=merge", "-p", SUCCEEDED),
                )
        return bool(is_condition_true(self.trainjob(), "Complete"))


@pytest.fixture
def site(lane: ApiLane, tmp_path: Path) -> Iterator[Site]:
    made = yaml.safe_load(
        lane.kubectl(
            *("create", "-f", "-", "-o", "yaml"),
            stdin="apiVersion: v1\nkind: Namespace\nmetadata: {generateName: manager-}\n",
        )
    )
    found = Site(lane, tmp_path, made["metadata"]["name"])
    try:
        yield found
    finally:
        for manager in found.managers:
            manager.process.kill()
            manager.process.wait()


async def test_a_trainjob_runs_to_its_end_while_its_managers_change(site: Site) -> None:
    first = site.start()
    await first.wait_log("reconciling")
    runtime = make_runtime("plain")
    runtime["kind"] = "TrainingRuntime"
    site.apply(runtime)
    job = make_trainjob("t", ["true"], runtime="plain", nodes=2)
    job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    site.apply(job)
    await wait_until(lambda: len(site.list("pods")) == 2, "two Pods")
    leader = site.holder()

    second = site.start()
    await second.wait_log("caches are in step")
    first.send(signal.SIGKILL)
    await wait_until(lambda: site.holder() not in {"", leader}, "the second one leads")
    await wait_until(site.finish_pods, "Complete")
    jobs = site.trainjob()["status"]["jobsStatus"]
    assert [(job["name"], job["succeeded"]) for job in jobs] == [("node", 1)]

    second.send(signal.SIGTERM)
    assert await second.wait_end() == 0
    assert site.holder() == ""
    assert not [line for line in second.log.splitlines() if '"level":"error"' in line], second.log
