from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.crds import build_crd
from trainwright.api.kinds import JOBSET, TRAINJOB
from trainwright.api.schemas.registry import schema_of
from trainwright.base.errors import NotFound
from trainwright.manager.served import (
    REQUIRED,
    compare_schemas,
    find_lacking_fields,
    find_missing,
)


class Server:
    """Answers from a table; what is not in it is not served."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    async def request(self, method: str, path: str) -> dict[str, Any]:
        assert method == "GET"
        if path not in self._answers:
            raise NotFound(path)
        found: dict[str, Any] = self._answers[path]
        return found


def resources(*names: str) -> dict[str, Any]:
    return {"resources": [{"name": name} for name in names]}


TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2"


@pytest.mark.parametrize(
    ("answers", "missing"),
    [
        (
            {
                TRAINER: resources("trainjobs", "trainingruntimes", "clustertrainingruntimes"),
                JOBSETS: resources("jobsets", "jobsets/status"),
            },
            [],
        ),
        (
            {TRAINER: resources("trainjobs", "trainingruntimes", "clustertrainingruntimes")},
            ["jobsets.jobset.x-k8s.io"],
        ),
        (
            {TRAINER: resources("trainjobs"), JOBSETS: resources("jobsets")},
            [
                "trainingruntimes.trainer.kubeflow.org",
                "clustertrainingruntimes.trainer.kubeflow.org",
            ],
        ),
    ],
)
async def test_what_is_missing_is_found(answers: dict[str, Any], missing: list[str]) -> None:
    assert [need.resource for need in await find_missing(Server(answers), REQUIRED)] == missing


def test_our_own_crds_lack_nothing() -> None:
    for kind in (TRAINJOB, JOBSET):
        served = build_crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        wanted = schema_of(kind)
        assert wanted is not None
        assert list(compare_schemas(wanted, served)) == []


async def test_fields_of_newer_versions_are_named() -> None:
    def schema(**fields: Any) -> dict[str, Any]:
        return {"type": "object", "properties": fields}

    text = {"type": "string"}
    jobs = {"type": "array", "items": schema(name=text, template=schema())}
    old = schema(spec=schema(suspend=text, replicatedJobs=jobs), metadata=schema())
    old["x-kubernetes-group-version-kind"] = [
        {"group": JOBSET.group, "version": JOBSET.version, "kind": JOBSET.kind}
    ]
    path = f"/openapi/v3/apis/{JOBSET.api_version}"
    server = Server({path: {"components": {"schemas": {"x": schema(), "y": old}}}})
    lacking = await find_lacking_fields(server, JOBSET)
    assert "spec.volumeClaimPolicies" in lacking
    assert "spec.replicatedJobs[].dependsOn" in lacking
    assert not [path for path in lacking if "template" in path or path.startswith("metadata")]
