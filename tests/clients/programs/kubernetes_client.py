"""What users do with the official Python client: typed, custom and dynamic, and watches."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

GROUP, VERSION = "trainer.kubeflow.org", "v1alpha1"
RUNTIME = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "plain", "labels": {"trainer.kubeflow.org/framework": "torch"}},
    "spec": {
        "mlPolicy": {"numNodes": 1},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {
                                "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
                            },
                            "spec": {
                                "template": {
                                    "spec": {"containers": [{"name": "node", "image": "i"}]}
                                }
                            },
                        },
                    }
                ]
            }
        },
    },
}


def code_of(call, *arguments, **keywords) -> int:
    """The HTTP code that a call fails with; 200 when it does not."""
    try:
        call(*arguments, **keywords)
    except ApiException as error:
        return error.status
    return 200


def use_core(core: client.CoreV1Api) -> None:
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"x": "1"})
    made = core.create_namespaced_config_map("default", body)
    assert made.metadata.uid
    assert code_of(core.create_namespaced_config_map, "default", body) == 409
    patched = core.patch_namespaced_config_map("a", "default", {"data": {"y": "2"}})
    assert patched.data == {"x": "1", "y": "2"}
    patched.data = {"z": "3"}
    replaced = core.replace_namespaced_config_map("a", "default", patched)
    assert replaced.data == {"z": "3"}
    patched.metadata.resource_version = made.metadata.resource_version
    assert code_of(core.replace_namespaced_config_map, "a", "default", patched) == 409
    names = [item.metadata.name for item in core.list_config_map_for_all_namespaces().items]
    assert "a" in names
    pages = core.list_namespaced_config_map("default", label_selector="k in (a, b),!c", limit=1)
    assert pages.items == []
    core.delete_namespaced_config_map("a", "default")
    assert code_of(core.read_namespaced_config_map, "a", "default") == 404
    threads = [core.list_namespaced_pod("default", async_req=True) for _ in range(8)]
    assert all(thread.get().items == [] for thread in threads)


def use_jobs_and_events(core: client.CoreV1Api, batch: client.BatchV1Api) -> None:
    container = client.V1Container(name="c", image="i", command=["true"])
    template = client.V1PodTemplateSpec(
        spec=client.V1PodSpec(containers=[container], restart_policy="Never")
    )
    job = client.V1Job(
        metadata=client.V1ObjectMeta(name="j"), spec=client.V1JobSpec(template=template)
    )
    made = batch.create_namespaced_job("default", job)
    status = {"status": {"active": 1}}
    assert batch.patch_namespaced_job_status("j", "default", status).status.active == 1
    reference = client.V1ObjectReference(kind="Job", name="j", uid=made.metadata.uid)
    event = client.CoreV1Event(
        metadata=client.V1ObjectMeta(name="j.1"),
        involved_object=reference,
        reason="Made",
        event_time=datetime.now(UTC),
    )
    core.create_namespaced_event("default", event)
    selector = f"involvedObject.uid={made.metadata.uid},reason=Made"
    found = core.list_namespaced_event("default", field_selector=selector).items
    assert [item.metadata.name for item in found] == ["j.1"]
    assert client.EventsV1Api().list_namespaced_event("default").items[0].reason == "Made"
    batch.delete_namespaced_job("j", "default", propagation_policy="Background")


def use_custom_objects(custom: client.CustomObjectsApi) -> None:
    where = (GROUP, VERSION, "clustertrainingruntimes")
    custom.create_cluster_custom_object(*where, RUNTIME)
    listed = custom.list_cluster_custom_object(*where)["items"]
    assert [(item["kind"], item["metadata"]["name"]) for item in listed] == [
        ("ClusterTrainingRuntime", "plain")
    ]
    patch = {"metadata": {"labels": {"team": "a"}}}
    patched = custom.patch_cluster_custom_object(*where, "plain", patch)
    assert patched["metadata"]["labels"]["team"] == "a"
    custom.delete_cluster_custom_object(*where, "plain")


def follow_changes(core: client.CoreV1Api) -> None:
    version = core.list_namespaced_config_map("default").metadata.resource_version
    seen = []

    def change() -> None:
        for name in ("w1", "w2"):
            body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name))
            core.create_namespaced_config_map("default", body)
            core.delete_namespaced_config_map(name, "default")

    worker = threading.Thread(target=change)
    worker.start()
    watching = watch.Watch()
    stream = watching.stream(
        core.list_namespaced_config_map,
        "default",
        resource_version=version,
        timeout_seconds=50,
    )
    for event in stream:
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 4:
            watching.stop()
    worker.join()
    assert seen == [("ADDED", "w1"), ("DELETED", "w1"), ("ADDED", "w2"), ("DELETED", "w2")], seen


def use_dynamic_client(api: client.ApiClient) -> None:
    found = dynamic.DynamicClient(api)
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"a": "1"}}
    maps.create(body=body, namespace="default")
    body["data"] = {"a": "2"}
    applied = maps.server_side_apply(
        body=body, name="d", namespace="default", field_manager="tool", force_conflicts=True
    )
    assert applied.data.a == "2"
    maps.delete(name="d", namespace="default")
    jobs = found.resources.get(api_version=f"{GROUP}/{VERSION}", kind="TrainJob")
    assert jobs.get(namespace="default").items == []


def main() -> None:
    config.load_kube_config()
    core = client.CoreV1Api()
    assert client.VersionApi().get_code().git_version.startswith("v1.")
    use_core(core)
    use_jobs_and_events(core, client.BatchV1Api())
    use_custom_objects(client.CustomObjectsApi())
    follow_changes(core)
    use_dynamic_client(client.ApiClient())


if __name__ == "__main__":
    main()
