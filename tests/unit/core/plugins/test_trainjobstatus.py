"""What pods are told about progress, and what is applied with their JobSet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.core.trainjob.factories import make_job, make_runtime, make_trainjob
from trainwright.api.trainjob import parse_runtime, parse_trainjob
from trainwright.base.objects import dig
from trainwright.core.trainjob.build import build_job, build_objects
from trainwright.core.trainjob.render import render_trainjob
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS, StatusServer, TrainJobSettings

if TYPE_CHECKING:
    from trainwright.base.objects import Object

ON = TrainJobSettings(status_server=StatusServer(url="https://server:10443", ca_pem="PEM"))
FOLDER = "/var/run/secrets/kubeflow/trainer"
AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/ml/trainjobs/tj/status"


def build(trainjob: Object, settings: TrainJobSettings) -> dict[str, Object]:
    job = build_job(parse_trainjob(trainjob), parse_runtime(make_runtime()), settings=settings)
    return {obj["kind"]: obj for obj in build_objects(job)}


def pod_of(jobset: Object) -> Object:
    pod: Object = dig(jobset, "spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
    return pod


def test_nothing_is_injected_while_the_gate_is_off() -> None:
    objects = build(make_trainjob(), DEFAULT_SETTINGS)
    assert list(objects) == ["JobSet"]
    assert "volumes" not in pod_of(objects["JobSet"])


def test_pods_get_url_token_and_authority() -> None:
    objects = build(make_trainjob(), ON)
    assert list(objects) == ["ConfigMap", "JobSet"]
    assert objects["ConfigMap"]["metadata"]["name"] == "tj-tls-config"
    assert dig(objects["ConfigMap"], "metadata", "ownerReferences", 0, "name") == "tj"
    assert objects["ConfigMap"]["data"] == {"ca.crt": "PEM"}
    pod = pod_of(objects["JobSet"])
    for container in pod["containers"]:
        env = {v["name"]: v.get("value") for v in container["env"]}
        assert env["KUBEFLOW_TRAINER_SERVER_URL"] == f"https://server:10443/apis/{AUDIENCE}"
        assert env["KUBEFLOW_TRAINER_SERVER_CA_CERT"] == f"{FOLDER}/ca.crt"
        assert env["KUBEFLOW_TRAINER_SERVER_TOKEN"] == f"{FOLDER}/token"
        assert container["volumeMounts"][-1] == {
            "name": "kubeflow-trainer-token",
            "mountPath": FOLDER,
            "readOnly": True,
        }
    token, authority = pod["volumes"][-1]["projected"]["sources"]
    assert token["serviceAccountToken"]["audience"] == AUDIENCE
    assert authority["configMap"]["name"] == "tj-tls-config"


def test_the_users_own_url_wins() -> None:
    mine = {"name": "KUBEFLOW_TRAINER_SERVER_URL", "value": "mine"}
    pod = pod_of(build(make_trainjob(trainer={"env": [mine]}), ON)["JobSet"])
    assert mine in pod["containers"][0]["env"]


def test_an_authority_that_is_not_known_yet_is_an_error_that_is_retried() -> None:
    unknown = TrainJobSettings(status_server=StatusServer(url="https://server", ca_pem=""))
    with pytest.raises(ValueError, match="not known yet"):
        build(make_trainjob(), unknown)


def test_render_still_shows_the_jobset() -> None:
    rendered = render_trainjob(make_trainjob(), make_runtime(make_job()), ON)
    assert rendered.jobset["kind"] == "JobSet"
    assert "plugin TrainJobStatus" in rendered.origins.values()
