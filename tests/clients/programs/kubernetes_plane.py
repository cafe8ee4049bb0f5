"""What users of the official Python client do with Pods that run."""

from __future__ import annotations

import json
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

SPACE = "default"
TRAINJOBS = ("trainer.kubeflow.org", "v1alpha1", SPACE, "trainjobs")
LIMIT_S = 90
HOLD = "while [ ! -e stop ]; do sleep 0.1; done"


def make_job(name: str, script: str) -> client.V1Job:
    container = client.V1Container(name="main", image="local", command=["sh", "-c", script])
    spec = client.V1PodSpec(
        containers=[container], restart_policy="Never", termination_grace_period_seconds=1
    )
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"app": name}), spec=spec
    )
    return client.V1Job(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1JobSpec(template=template, backoff_limit=0),
    )


def make_trainjob(name: str, script: str) -> dict:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "plain-distributed"},
            "trainer": {"numNodes": 2, "command": ["sh", "-c", script]},
        },
    }


def wait_pod(core: client.CoreV1Api, selector: str, is_so) -> client.V1Pod:
    """Watch pods from the present list on until one is so."""
    listed = core.list_namespaced_pod(SPACE, label_selector=selector)
    for pod in listed.items:
        if is_so(pod):
            return pod
    events = watch.Watch().stream(
        core.list_namespaced_pod,
        SPACE,
        label_selector=selector,
        resource_version=listed.metadata.resource_version,
        timeout_seconds=LIMIT_S,
    )
    for event in events:
        if is_so(event["object"]):
            return event["object"]
    raise AssertionError(f"no pod of {selector} came to be so within {LIMIT_S} s")


def is_ready(pod: client.V1Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())


def wait_deleted(call, *arguments, resource_version: str) -> None:
    """Watch a collection from then on until an object of it is gone."""
    watching = watch.Watch()
    events = watching.stream(
        call, *arguments, resource_version=resource_version, timeout_seconds=LIMIT_S
    )
    for event in events:
        if event["type"] == "DELETED":
            return
    raise AssertionError(f"nothing was deleted within {LIMIT_S} s")


def refusal_of(call, *arguments, **keywords) -> ApiException:
    """What a call fails with."""
    try:
        call(*arguments, **keywords)
    except ApiException as error:
        return error
    raise AssertionError("the call was not refused")


def run_command(core: client.CoreV1Api, pod: str, *command: str) -> tuple[str, int]:
    """Output and exit code of a command beside a container."""
    socket = stream(
        core.connect_get_namespaced_pod_exec,
        pod,
        SPACE,
        command=list(command),
        stderr=True,
        stdin=False,
        stdout=True,
        tty=False,
        _preload_content=False,
    )
    socket.run_forever(timeout=LIMIT_S)
    return socket.read_stdout() + socket.read_stderr(), socket.returncode


def follow_a_job(core: client.CoreV1Api, batch: client.BatchV1Api) -> None:
    # `stream` takes a client over while it runs, so others need one of their own.
    other = client.CoreV1Api(client.ApiClient())
    batch.create_namespaced_job(SPACE, make_job("counted", f"echo one; {HOLD}; echo two"))
    name = wait_pod(core, "app=counted", is_ready).metadata.name
    followed: list[bytes] = []

    def follow() -> None:
        answer = core.read_namespaced_pod_log(name, SPACE, follow=True, _preload_content=False)
        followed.extend(answer.stream())

    reader = threading.Thread(target=follow)
    reader.start()
    assert run_command(other, name, "sh", "-c", "echo out; exit 3") == ("out\n", 3)
    whole = stream(
        other.connect_get_namespaced_pod_exec, name, SPACE, command=["echo", "plain"],
        stderr=True, stdin=False, stdout=True, tty=False,
    )  # fmt: skip
    assert whole == "plain\n", whole
    talk = stream(
        other.connect_get_namespaced_pod_exec, name, SPACE, command=["sh", "-c", "read x; echo $x"],
        stderr=True, stdin=True, stdout=True, tty=False, _preload_content=False,
    )  # fmt: skip
    talk.write_stdin("said\n")
    talk.run_forever(timeout=LIMIT_S)
    assert (talk.read_stdout(), talk.returncode) == ("said\n", 0)
    seen = stream(
        other.connect_get_namespaced_pod_exec, name, SPACE, command=["sh", "-c", "test -t 0 && tty"],
        stderr=True, stdin=True, stdout=True, tty=True,
    )  # fmt: skip
    assert seen.startswith("/dev/pts/"), seen
    assert run_command(other, name, "touch", "stop")[1] == 0
    ended = wait_pod(core, "app=counted", lambda pod: pod.status.phase == "Succeeded")
    assert ended.status.container_statuses[0].state.terminated.exit_code == 0
    reader.join(LIMIT_S)
    assert b"".join(followed) == b"one\ntwo\n", followed
    last = core.read_namespaced_pod_log(name, SPACE, tail_lines=1, timestamps=True)
    assert last.endswith("Z two\n"), last

    jobs = watch.Watch()
    for event in jobs.stream(batch.list_namespaced_job, SPACE, timeout_seconds=LIMIT_S):
        if event["object"].metadata.name == "counted" and event["object"].status.succeeded == 1:
            jobs.stop()
            break
    version = batch.list_namespaced_job(SPACE).metadata.resource_version
    batch.delete_namespaced_job("counted", SPACE, propagation_policy="Foreground")
    wait_deleted(batch.list_namespaced_job, SPACE, resource_version=version)
    assert core.list_namespaced_pod(SPACE, label_selector="app=counted").items == []


def follow_log_by_watch(core: client.CoreV1Api, batch: client.BatchV1Api) -> None:
    """`Watch.stream` over a log gives lines."""
    batch.create_namespaced_job(SPACE, make_job("lines", "echo a; sleep 1; echo b; exit 5"))
    pod = wait_pod(core, "app=lines", lambda pod: pod.status.phase in ("Running", "Failed"))
    read = watch.Watch().stream(core.read_namespaced_pod_log, pod.metadata.name, SPACE)
    assert list(read) == ["a", "b"]
    failed = wait_pod(core, "app=lines", lambda pod: pod.status.phase == "Failed")
    assert failed.status.container_statuses[0].state.terminated.exit_code == 5
    batch.delete_namespaced_job("lines", SPACE, propagation_policy="Background")


def live_with_trainjobs(custom: client.CustomObjectsApi, core: client.CoreV1Api) -> None:
    made = custom.create_namespaced_custom_object(*TRAINJOBS, make_trainjob("tune", "sleep 600"))
    assert made["spec"]["suspend"] is False
    wait_pod(core, "jobset.sigs.k8s.io/jobset-name=tune", is_ready)
    suspended = custom.patch_namespaced_custom_object(
        *TRAINJOBS, "tune", {"spec": {"suspend": True}}
    )
    assert suspended["spec"]["suspend"] is True
    found = watch.Watch()
    events = found.stream(
        custom.list_namespaced_custom_object,
        *TRAINJOBS,
        resource_version=made["metadata"]["resourceVersion"],
        timeout_seconds=LIMIT_S,
    )
    for event in events:
        conditions = event["object"].get("status", {}).get("conditions", [])
        if any(c["type"] == "Suspended" and c["status"] == "True" for c in conditions):
            found.stop()
    status = custom.get_namespaced_custom_object_status(*TRAINJOBS, "tune")["status"]
    assert status["jobsStatus"][0]["name"] == "node", status
    bad = {"spec": {"runtimeRef": {"name": "other"}}}
    error = refusal_of(custom.patch_namespaced_custom_object, *TRAINJOBS, "tune", bad)
    assert error.status in (403, 422), error
    assert "runtimeRef" in json.loads(error.body)["message"]
    version = custom.list_namespaced_custom_object(*TRAINJOBS)["metadata"]["resourceVersion"]
    custom.delete_namespaced_custom_object(*TRAINJOBS, "tune", propagation_policy="Foreground")
    wait_deleted(custom.list_namespaced_custom_object, *TRAINJOBS, resource_version=version)
    pods = core.list_namespaced_pod(SPACE, label_selector="jobset.sigs.k8s.io/jobset-name=tune")
    assert pods.items == []


def watch_from_too_far_back(core: client.CoreV1Api) -> None:
    """A resourceVersion from before the plane's start gets a 410, which the client raises."""
    events = watch.Watch().stream(
        core.list_namespaced_pod, SPACE, resource_version="1", timeout_seconds=LIMIT_S
    )
    error = refusal_of(next, events)
    assert error.status == 410, error


def use_dynamic_client(api: client.ApiClient) -> None:
    found = dynamic.DynamicClient(api)
    jobs = found.resources.get(api_version="trainer.kubeflow.org/v1alpha1", kind="TrainJob")
    body = make_trainjob("applied", "sleep 600")
    body["spec"]["suspend"] = True
    for step in ("one", "two"):
        body["metadata"]["labels"] = {"step": step}
        applied = jobs.server_side_apply(
            body=body, name="applied", namespace=SPACE, field_manager="tool"
        )
        assert applied.metadata.labels.step == step
    body["metadata"]["labels"] = {"step": "three"}
    error = refusal_of(
        jobs.server_side_apply,
        body=body,
        name="applied",
        namespace=SPACE,
        field_manager="other",
    )
    assert error.status == 409, error
    forced = jobs.server_side_apply(
        body=body, name="applied", namespace=SPACE, field_manager="other", force_conflicts=True
    )
    managers = {entry.manager for entry in forced.metadata.managedFields}
    assert {"tool", "other"} <= managers, managers
    seen = []
    for event in jobs.watch(
        namespace=SPACE, timeout=LIMIT_S, field_selector="metadata.name=applied"
    ):
        seen.append(event["type"])
        if event["type"] == "ADDED":
            jobs.delete(name="applied", namespace=SPACE)
        if event["type"] == "DELETED":
            break
    assert (seen[0], seen[-1]) == ("ADDED", "DELETED"), seen


def main() -> None:
    config.load_kube_config()
    core, batch = client.CoreV1Api(), client.BatchV1Api()
    follow_a_job(core, batch)
    follow_log_by_watch(core, batch)
    live_with_trainjobs(client.CustomObjectsApi(), core)
    watch_from_too_far_back(core)
    use_dynamic_client(client.ApiClient())


if __name__ == "__main__":
    main()
