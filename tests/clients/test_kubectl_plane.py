"""kubectl as users have it, against a whole plane: Pods run, end, restart and are looked into."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from tests.support.planes import KUBECTL, TestPlane, make_plane, make_trainjob, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.timeout(300)
WAIT = "--timeout=90s"
HOLD = "while [ ! -e stop ]; do sleep 0.1; done"
"""Runs until the test makes the file `stop` in the container's folder."""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  names: {kind: Gadget, plural: gadgets, singular: gadget, shortNames: [gd]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties: {size: {type: integer, minimum: 1, description: How large it is.}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
LIMITS = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {pods: "2", requests.cpu: "1"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: range}
spec:
  limits:
  - {type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 200m}, max: {cpu: "1"}}
"""
CLAIM_AND_POD = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: local
    command: [sh, -c, "echo kept >> /data/lines; cat /data/lines"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""
SURROUNDINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {key: from-map}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {word: from-secret}
---
apiVersion: v1
kind: Pod
metadata: {name: rich, labels: {app: rich}}
spec:
  restartPolicy: Never
  initContainers:
  - name: first
    image: local
    command: [sh, -c, "echo 1 first >> /shared/order; echo words of first"]
    volumeMounts: [{name: shared, mountPath: /shared}]
  - name: second
    image: local
    command: [sh, -c, "echo 2 second >> /shared/order"]
    volumeMounts: [{name: shared, mountPath: /shared}]
  containers:
  - name: main
    image: local
    command:
    - sh
    - -c
    - |
      cat /shared/order
      echo "$NAME $SPACE $NODE $LABEL $FROM_MAP $FROM_SECRET"
      cat /proj/labels; echo; cat /proj/maps/key; echo; cat /proj/word; echo
      [ -s /proj/token ] && echo token
      while [ ! -e /shared/stop ]; do sleep 0.1; done
    env:
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: SPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
    - {name: FROM_MAP, valueFrom: {configMapKeyRef: {name: conf, key: key}}}
    - {name: FROM_SECRET, valueFrom: {secretKeyRef: {name: hidden, key: word}}}
    readinessProbe: {exec: {command: [test, -e, /shared/ready]}, periodSeconds: 1}
    volumeMounts: [{name: shared, mountPath: /shared}, {name: proj, mountPath: /proj}]
  - name: side
    image: local
    command: [sh, -c, "echo beside; while [ ! -e /shared/stop ]; do sleep 0.1; done"]
    volumeMounts: [{name: shared, mountPath: /shared}]
  volumes:
  - {name: shared, emptyDir: {}}
  - name: proj
    projected:
      sources:
      - downwardAPI:
          items: [{path: labels, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}]
      - {configMap: {name: conf, items: [{key: key, path: maps/key}]}}
      - {secret: {name: hidden}}
      - {serviceAccountToken: {path: token, expirationSeconds: 3600}}
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestPlane]:
    with make_plane(tmp_path_factory.mktemp("plane")) as running:
        yield running


def make_pod(name: str, script: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "local", "command": ["sh", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def run_pod(plane: TestPlane, name: str, script: str = HOLD, **spec: Any) -> None:
    plane.apply(make_pod(name, script, **spec))
    plane.kubectl("wait", "--for=condition=Ready", f"pod/{name}", WAIT)


def wait_phase(plane: TestPlane, name: str, phase: str) -> None:
    plane.kubectl("wait", f"--for=jsonpath={{.status.phase}}={phase}", f"pod/{name}", WAIT)


def is_missing(path: Path) -> bool:
    return not path.exists()


def cells(text: str) -> Sequence[Sequence[str]]:
    """A table's rows below its header."""
    return [line.split() for line in text.splitlines()[1:]]


def test_a_pod_has_the_surroundings_that_it_asks_for(plane: TestPlane) -> None:
    plane.kubectl("apply", "-f", "-", stdin=SURROUNDINGS)
    wait_phase(plane, "rich", "Running")
    again = plane.kubectl("apply", "-f", "-", stdin=SURROUNDINGS)
    assert "pod/rich unchanged" in again
    logs = ("logs", "rich", "-c", "main")
    said = wait_until(lambda: "token" in (text := plane.kubectl(*logs)) and text, "all is said")
    assert said.splitlines() == [
        "1 first", "2 second", "rich default laptop rich from-map from-secret",
        'app="rich"', "from-map", "from-secret", "token",
    ]  # fmt: skip
    assert cells(plane.kubectl("get", "pod", "rich"))[0][:3] == ["rich", "1/2", "Running"]
    plane.kubectl("exec", "rich", "-c", "main", "--", "touch", "/shared/ready")
    plane.kubectl("wait", "--for=condition=Ready", "pod/rich", WAIT)
    assert cells(plane.kubectl("get", "pod", "rich"))[0][1] == "2/2"

    everything = plane.kubectl("logs", "rich", "--all-containers", "--prefix").splitlines()
    assert {"[pod/rich/first] words of first", "[pod/rich/side] beside"} <= set(everything)
    stamped = plane.kubectl("logs", "rich", "-c", "first", "--timestamps")
    assert stamped.split(" ", 1)[0].endswith("Z")
    assert stamped.split(" ", 1)[1] == "words of first\n"
    told = plane.kubectl("describe", "pod", "rich")
    for part in ("Init Containers:", "Started container side", "Exit Code:    0", "laptop/"):
        assert part in told
    plane.kubectl("exec", "rich", "-c", "main", "--", "touch", "/shared/stop")
    wait_phase(plane, "rich", "Succeeded")
    assert cells(plane.kubectl("get", "pod", "rich"))[0][1:3] == ["0/2", "Completed"]
    refused = plane.kubectl("attach", "rich", "-c", "main", code=1)
    assert "completed pod" in refused


def test_exec_cp_and_attach(plane: TestPlane) -> None:
    run_pod(plane, "desk", f"echo begun; {HOLD}; echo over")
    plane.kubectl("exec", "desk", "--", "sh", "-c", "exit 7", code=7)
    assert 'cannot start "none-such"' in plane.kubectl("exec", "desk", "--", "none-such", code=1)
    text = "line one\nline two\n"
    assert plane.kubectl("exec", "-i", "desk", "--", "cat", stdin=text) == text
    both = plane.kubectl("exec", "desk", "--", "sh", "-c", "echo out; echo err >&2")
    assert sorted(both.split()) == ["err", "out"]
    assert "not found" in plane.kubectl("exec", "nobody", "--", "true", code=1)
    assert "not valid" in plane.kubectl("exec", "desk", "-c", "none", "--", "true", code=1)

    (plane.scratch / "there.txt").write_text(text)
    folder = plane.kubectl("exec", "desk", "--", "pwd").strip()
    plane.kubectl("cp", "there.txt", f"desk:{folder}/there.txt")
    plane.kubectl("cp", f"desk:{folder}/there.txt", "back.txt")
    assert (plane.scratch / "back.txt").read_text() == text

    refused = plane.kubectl("attach", "-i", "desk", code=1)
    assert "the input of pod desk cannot be joined on the laptop" in refused
    with_output = plane.kubectl(
        "run", "once", "--image=local", "--restart=Never", "--attach", "--rm", "--command",
        "--", "sh", "-c", "echo seen; sleep 1; exit 4", code=4,
    )  # fmt: skip
    assert "seen" in with_output
    plane.kubectl("exec", "desk", "--", "touch", "stop")
    wait_phase(plane, "desk", "Succeeded")
    assert plane.kubectl("logs", "desk").split() == ["begun", "over"]


def test_logs_of_every_kind(plane: TestPlane) -> None:
    script = f"echo one; echo two; echo err >&2; {HOLD}; echo last"
    for name in ("log-a", "log-b"):
        pod = make_pod(name, script)
        pod["metadata"]["labels"] = {"set": "logs"}
        plane.apply(pod)
    plane.kubectl("wait", "--for=condition=Ready", "pod", "-l", "set=logs", WAIT)
    wait_until(lambda: "err" in plane.kubectl("logs", "log-a"), "all of the first words are there")
    assert plane.kubectl("logs", "log-a", "--tail", "0") == ""
    assert len(plane.kubectl("logs", "log-a", "--tail", "2").splitlines()) == 2
    assert plane.kubectl("logs", "log-a", "--limit-bytes", "3") == "one"
    missing = plane.kubectl("logs", "log-a", "--previous", code=1)
    assert 'previous terminated container "main" in pod "log-a" not found' in missing

    for name in ("log-a", "log-b"):
        plane.kubectl("exec", name, "--", "touch", "stop")
    followed = plane.kubectl("logs", "-f", "log-a")
    assert followed.split() == ["one", "two", "err", "last"]
    chosen = plane.kubectl("logs", "-f", "-l", "set=logs", "--prefix", "--tail", "-1").splitlines()
    assert {"[pod/log-a/main] last", "[pod/log-b/main] last"} <= set(chosen)
    assert len(chosen) == 8


def test_a_container_that_crashes_restarts_and_keeps_its_last_words(plane: TestPlane) -> None:
    script = '[ -e "$STATE/ran" ] || { touch "$STATE/ran"; echo first words; exit 9; }; sleep 600'
    pod = make_pod("crash", script, restartPolicy="OnFailure", terminationGracePeriodSeconds=1)
    pod["spec"]["containers"][0]["env"] = [{"name": "STATE", "value": str(plane.scratch)}]
    plane.apply(pod)
    restarted = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1"
    plane.kubectl("wait", restarted, "pod/crash", WAIT)
    plane.kubectl("wait", "--for=condition=Ready", "pod/crash", WAIT)
    assert plane.kubectl("logs", "crash", "--previous") == "first words\n"
    assert cells(plane.kubectl("get", "pod", "crash"))[0][:4] == ["crash", "1/1", "Running", "1"]
    told = plane.kubectl("describe", "pod", "crash")
    assert "Exit Code:    9" in told
    assert "Restart Count:  1" in told
    assert plane.kubectl("delete", "pod", "crash", WAIT).startswith('pod "crash"')
    assert plane.get("pod", "crash") is None


def test_a_pod_that_ignores_its_end_goes_after_its_grace(plane: TestPlane) -> None:
    script = "trap '' TERM; echo $$; while true; do sleep 0.1; done"
    for ending in (("--grace-period=1",), ("--grace-period=0", "--force")):
        run_pod(plane, "deaf", script, terminationGracePeriodSeconds=3600)
        pid = wait_until(lambda: plane.kubectl("logs", "deaf").strip(), "it says its number")
        plane.kubectl("delete", "pod", "deaf", *ending, WAIT)
        assert plane.get("pod", "deaf") is None
        process = Path("/proc", pid)
        wait_until(partial(is_missing, process), "its process is gone")


def test_trainjobs_from_apply_to_delete(plane: TestPlane) -> None:
    job = make_trainjob("tune", ["sh", "-c", "echo step; sleep 600"], nodes=2)
    text = yaml.safe_dump(job)
    said = [plane.kubectl("apply", "-f", "-", stdin=text).split()[-1] for _ in range(2)]
    assert said == ["created", "unchanged"]
    served = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in plane.kubectl(*served, stdin=text)
    job["spec"]["trainer"]["numNodes"] = 3
    refused = plane.kubectl(*served, "--field-manager=other", stdin=yaml.safe_dump(job), code=1)
    assert "conflict" in refused
    active = "--for=jsonpath={.status.jobsStatus[0].active}=1"
    plane.kubectl("wait", active, "trainjob/tune", WAIT)
    plane.kubectl("wait", "--for=jsonpath={.status.ready}=2", "job/tune-node-0", WAIT)

    listed = plane.kubectl("get", "trainjob,jobset,job,pod,service", "-o", "name")
    for name in ("trainjob.trainer.kubeflow.org/tune", "jobset.jobset.x-k8s.io/tune",
                 "job.batch/tune-node-0", "service/tune"):  # fmt: skip
        assert name in listed.split()
    assert "Num Nodes:  2" in plane.kubectl("describe", "trainjob", "tune")
    assert "Replicated Jobs Status:" in plane.kubectl("describe", "jobset", "tune")
    assert "2 Active (2 Ready)" in plane.kubectl("describe", "job", "tune-node-0")
    assert "tune-node-0-0" in plane.kubectl("describe", "node", "laptop")
    assert "SuccessfulCreate" in plane.kubectl("events", "--for", "job/tune-node-0")
    assert plane.kubectl("logs", "job/tune-node-0").splitlines()[-1] == "step"
    chosen = ("-l", "jobset.sigs.k8s.io/jobset-name=tune", "--prefix")
    lines = wait_until(
        lambda: len(found := plane.kubectl("logs", *chosen).splitlines()) == 2 and found,
        "both nodes said their step",
    )
    assert all(line.endswith("/node] step") for line in lines)

    patch = ("patch", "trainjob", "tune")
    plane.kubectl(*patch, "--type=merge", "-p", '{"metadata":{"labels":{"a":"b","c":"d"}}}')
    remove = '[{"op":"remove","path":"/metadata/labels/a"}]'
    plane.kubectl(*patch, "--type=json", "-p", remove)
    assert plane.get("trainjob", "tune")["metadata"]["labels"] == {"c": "d"}
    refused = plane.kubectl(*patch, "-p", '{"metadata":{"labels":{"x":"y"}}}', code=1)
    assert "strategic-merge-patch+json is not supported" in refused
    immutable = plane.kubectl(
        *patch, "--type=merge", "-p", '{"spec":{"runtimeRef":{"name":"x"}}}', code=1
    )
    assert "spec.runtimeRef" in immutable

    plane.kubectl(*patch, "--type=merge", "-p", '{"spec":{"suspend":true}}')
    plane.kubectl("wait", "--for=condition=Suspended", "trainjob/tune", WAIT)
    wait_until(lambda: not plane.pods("tune"), "a suspended job has no pods")
    plane.kubectl(*patch, "--type=merge", "-p", '{"spec":{"suspend":false}}')
    plane.kubectl("wait", "--for=jsonpath={.status.ready}=2", "job/tune-node-0", WAIT)
    plane.kubectl("delete", "trainjob", "tune", "--cascade=foreground", WAIT)
    assert plane.kubectl("get", "jobset,job,pod", "-l", chosen[1], "-o", "name") == ""
    assert plane.get("trainjob", "tune") is None


def test_orphans_stay_when_asked_for(plane: TestPlane) -> None:
    plane.apply(make_trainjob("left", ["sleep", "600"]))
    plane.kubectl("wait", "--for=jsonpath={.status.jobsStatus[0].active}=1", "trainjob/left", WAIT)
    plane.kubectl("delete", "trainjob", "left", "--cascade=orphan", WAIT)
    jobset = plane.get("jobset", "left")
    assert "ownerReferences" not in jobset["metadata"]
    assert "deletionTimestamp" not in jobset["metadata"]
    plane.kubectl("delete", "jobset", "left", WAIT)
    plane.kubectl("wait", "--for=delete", "job/left-node-0", WAIT)
    wait_until(lambda: not plane.pods("left"), "the pods go with their JobSet")


def test_a_job_from_the_command_line_is_watched_to_its_end(plane: TestPlane) -> None:
    script = f"{HOLD}; echo hi"
    plane.kubectl("create", "job", "hello", "--image=local", "--", "sh", "-c", script)
    plane.kubectl("wait", "--for=jsonpath={.status.ready}=1", "job/hello", WAIT)
    watch = ("get", "job", "hello", "--watch", "--no-headers", "--request-timeout=90s")
    seen = []
    with subprocess.Popen(
        [KUBECTL, *watch], env=plane.environ, stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        for line in watching.stdout:
            seen.append(line.split()[1:3])
            if len(seen) == 1:
                plane.kubectl("exec", "job/hello", "--", "touch", "stop")
            if line.split()[1] == "Complete":
                watching.terminate()
    assert seen[0] == ["Running", "0/1"]
    assert seen[-1] == ["Complete", "1/1"]
    plane.kubectl("wait", "--for=condition=complete", "job/hello", WAIT)
    assert plane.kubectl("logs", "job/hello") == "hi\n"
    row = cells(plane.kubectl("get", "job", "hello", "-o", "wide"))[0]
    assert row[:3] == ["hello", "Complete", "1/1"]
    assert "local" in row
    plane.kubectl("delete", "job", "hello", WAIT)
    plane.kubectl("wait", "--for=delete", "pod", "-l", "job-name=hello", WAIT)


def test_edit_label_and_patch_of_a_running_pod(plane: TestPlane) -> None:
    run_pod(plane, "still", "sleep 600", terminationGracePeriodSeconds=1)
    before = plane.get("pod", "still")
    editor = plane.scratch / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/app: still/app: edited/' \"$1\"\n")
    editor.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBE_EDITOR", str(editor))
        assert "edited" in plane.kubectl("edit", "pod", "still")
    plane.kubectl("patch", "pod", "still", "-p", '{"metadata":{"annotations":{"note":"here"}}}')
    plane.kubectl("label", "pod", "still", "tier=low")
    found = plane.get("pod", "still")
    assert found["metadata"]["labels"] == {"app": "edited", "tier": "low"}
    assert found["metadata"]["annotations"]["note"] == "here"
    fixed = '{"spec":{"containers":[{"name":"main","command":["true"]}]}}'
    assert "may not change fields" in plane.kubectl("patch", "pod", "still", "-p", fixed, code=1)
    after = plane.get("pod", "still")["status"]
    assert after["containerStatuses"] == before["status"]["containerStatuses"]
    selected = ("--field-selector", "status.phase=Running,spec.nodeName=laptop", "-o", "name")
    assert "pod/still" in plane.kubectl("get", "pod", *selected).split()
    plane.kubectl("delete", "pod", "still", WAIT)


def test_a_claim_is_bound_and_outlives_its_pods(plane: TestPlane) -> None:
    for run in (1, 2):
        plane.kubectl("apply", "-f", "-", stdin=CLAIM_AND_POD)
        wait_phase(plane, "writer", "Succeeded")
        assert plane.kubectl("logs", "writer") == "kept\n" * run
        plane.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", WAIT)
        plane.kubectl("delete", "pod", "writer", WAIT)
    assert cells(plane.kubectl("get", "pvc"))[0][:4] == ["data", "Bound", "1Gi", "ReadWriteOnce"]
    assert "Used By:       <none>" in plane.kubectl("describe", "pvc", "data")
    plane.kubectl("delete", "pvc", "data", WAIT)


def test_quota_and_limits_of_a_namespace_until_it_is_deleted(plane: TestPlane) -> None:
    plane.kubectl("create", "namespace", "team")
    plane.kubectl("apply", "-n", "team", "-f", "-", stdin=LIMITS)
    space = ("-n", "team")

    def run(name: str, code: int = 0, **resources: Any) -> str:
        pod = make_pod(name, "sleep 600", terminationGracePeriodSeconds=1)
        pod["spec"]["containers"][0]["resources"] = resources
        return plane.kubectl("create", *space, "-f", "-", stdin=yaml.safe_dump(pod), code=code)

    run("one")
    given = plane.get("pod", "one", *space)["spec"]["containers"][0]["resources"]
    assert given == {"limits": {"cpu": "500m"}, "requests": {"cpu": "200m"}}
    assert "maximum cpu usage per Container is 1" in run("big", 1, limits={"cpu": "2"})
    assert "exceeded quota: quota, requested: requests.cpu=900m" in run(
        "much", 1, requests={"cpu": "900m"}, limits={"cpu": "1"}
    )
    run("two")
    assert "requested: pods=1, used: pods=2, limited: pods=2" in run("three", 1)
    used = "--for=jsonpath={.status.used.pods}=2"
    plane.kubectl("wait", used, "quota/quota", *space, WAIT)
    assert "400m  1" in plane.kubectl("describe", "quota", *space)
    plane.kubectl("delete", "pod", "two", *space, WAIT)
    plane.kubectl("wait", "--for=jsonpath={.status.used.pods}=1", "quota/quota", *space, WAIT)
    run("three")
    plane.kubectl("delete", "namespace", "team", WAIT)
    assert plane.get("namespace", "team") is None
    assert plane.kubectl("get", "pod,quota,limits", *space, "-o", "name") == ""


def test_kinds_of_users(plane: TestPlane) -> None:
    plane.kubectl("apply", "-f", "-", stdin=CRD)
    plane.kubectl("wait", "--for=condition=Established", "crd/gadgets.example.org", WAIT)
    gadget = "apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {size: %d}\n"
    said = [
        plane.kubectl("apply", "-f", "-", stdin=gadget % size).split()[-1] for size in (3, 3, 4)
    ]
    assert said == ["created", "unchanged", "configured"]
    assert "greater than or equal to 1" in plane.kubectl(
        "apply", "-f", "-", stdin=gadget % 0, code=1
    )
    assert cells(plane.kubectl("get", "gd")) == [["g", "4"]]
    status = ("--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Good"}}')
    plane.kubectl("patch", "gadget", "g", *status)
    plane.kubectl("wait", "--for=jsonpath={.status.phase}=Good", "gadget/g", WAIT)
    assert "How large it is." in plane.kubectl("explain", "gadget.spec.size")
    plane.kubectl("delete", "crd", "gadgets.example.org", WAIT)
    plane.kubectl("get", "gadgets", code=1)


def test_nodes_are_cordoned_and_drained(plane: TestPlane) -> None:
    plane.kubectl("cordon", "laptop")
    plane.apply(make_pod("later", "sleep 600", terminationGracePeriodSeconds=1))
    wait_until(
        lambda: "were unschedulable" in plane.kubectl("events", "--for", "pod/later"),
        "the scheduler says why the pod waits",
    )
    assert "SchedulingDisabled" in plane.kubectl("get", "node", "laptop")
    plane.kubectl("uncordon", "laptop")
    plane.kubectl("wait", "--for=condition=Ready", "pod/later", WAIT)
    drain = ("drain", "laptop", "--force", "--pod-selector=app=later", WAIT)
    assert "pod/later evicted" in plane.kubectl(*drain)
    plane.kubectl("uncordon", "laptop")
    assert plane.get("pod", "later") is None


def test_what_a_plane_does_not_have_is_refused_clearly(plane: TestPlane) -> None:
    run_pod(plane, "plain", "sleep 600", terminationGracePeriodSeconds=1)
    for command, wanted in (
        ("port-forward plain 18080:80", "connect to 127.0.0.1 and the port"),
        ("debug plain --image=x -- sh", "ephemeral containers are disabled"),
        ("top pod", "Metrics API not available"),
        ("top node", "Metrics API not available"),
        ("rollout status job/none", "not found"),
        ("create deployment d --image=x", "could not find the requested resource"),
        ("delete namespace default", "this namespace may not be deleted"),
        ("get deployments", "doesn't have a resource type"),
        ("get pod nobody", 'pods "nobody" not found'),
        ("logs nobody", 'pods "nobody" not found'),
    ):
        said = plane.kubectl(*command.split(), code=1)
        assert wanted in said, command
        assert "panic" not in said
    plane.kubectl("delete", "pod", "plain", WAIT)


def test_the_plane_tells_about_itself(plane: TestPlane) -> None:
    assert "control plane" in plane.kubectl("cluster-info")
    assert plane.kubectl("auth", "can-i", "create", "trainjobs") == "yes\n"
    assert "Ready" in cells(plane.kubectl("get", "node"))[0]
    described = plane.kubectl("describe", "node", "laptop")
    assert "KubeletReady" in described
    assert "name\t<string> -required-" in plane.kubectl("explain", "trainjob.spec.runtimeRef")
    names = plane.kubectl("api-resources", "--namespaced", "-o", "name").split()
    assert {"pods", "jobs.batch", "jobsets.jobset.x-k8s.io", "resourcequotas"} <= set(names)
    diff = plane.kubectl("diff", "-f", "-", stdin=CRD, code=1)
    assert "+kind: CustomResourceDefinition" in diff
    everything = msgspec.json.decode(plane.kubectl("get", "events", "-A", "-o", "json"))
    assert everything["kind"] == "List"
