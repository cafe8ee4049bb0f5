"""The unmodified Kubeflow SDK finds runtimes and jobs on the embedded server."""

from __future__ import annotations

from kubeflow.trainer import TrainerClient
from kubernetes import client, config
from kubernetes_client import GROUP, RUNTIME, VERSION


def make_runtimes() -> None:
    custom = client.CustomObjectsApi()
    custom.create_cluster_custom_object(GROUP, VERSION, "clustertrainingruntimes", RUNTIME)
    own = {**RUNTIME, "kind": "TrainingRuntime", "metadata": {**RUNTIME["metadata"], "name": "own"}}
    custom.create_namespaced_custom_object(GROUP, VERSION, "default", "trainingruntimes", own)


def code_of_cause(trainer: TrainerClient, name: str) -> int:
    try:
        trainer.get_runtime(name)
    except RuntimeError as error:
        return error.__cause__.status
    return 200


def main() -> None:
    config.load_kube_config()
    make_runtimes()
    trainer = TrainerClient()
    found = {(runtime.name, runtime.kind.value) for runtime in trainer.list_runtimes()}
    assert found == {("plain", "ClusterTrainingRuntime"), ("own", "TrainingRuntime")}, found
    runtime = trainer.get_runtime("own")
    assert (runtime.trainer.framework, runtime.trainer.num_nodes) == ("torch", 1)
    assert trainer.get_runtime("plain").trainer.image == "i"
    assert code_of_cause(trainer, "none") == 404
    assert trainer.list_jobs() == []


if __name__ == "__main__":
    main()
