from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.component.server.registries import (
    make_config_map,
    make_pod,
    make_trainjob,
    open_registry,
)
from trainwright.api import kinds
from trainwright.base.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    Reason,
    RequestTooLarge,
    UnsupportedMediaType,
)
from trainwright.core.admission import Admission, Verdict
from trainwright.machinery.api import PatchType
from trainwright.server.requests import WriteOptions

if TYPE_CHECKING:
    from pathlib import Path

    from trainwright.base.objects import Object
    from trainwright.core.admission import Request
    from trainwright.server.inprocess import InProcessApi
    from trainwright.server.registry import Registry


async def create(api: InProcessApi, obj: Object) -> Object:
    kind = kinds.find_kind(obj["apiVersion"], obj["kind"])
    assert kind is not None
    return await api.create(kind, obj, field_manager="tester")


def managers(obj: Object) -> list[tuple[str, str, str]]:
    entries = obj["metadata"].get("managedFields", [])
    return [(e["manager"], e["operation"], e.get("subresource", "")) for e in entries]


async def test_create_fills_in_what_only_the_server_knows(api: InProcessApi) -> None:
    obj = make_trainjob()
    obj["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    obj["status"] = {"jobsStatus": []}
    made = await create(api, obj)
    metadata = made["metadata"]
    assert len(metadata["uid"]) == 36
    assert not metadata["creationTimestamp"].startswith("2001")
    assert metadata["generation"] == 1
    assert metadata["resourceVersion"].isdigit()
    assert managers(made) == [("tester", "Update", "")]
    assert "status" not in made
    assert await api.get(kinds.TRAINJOB, "default", "t") == made


async def test_create_refuses_what_cannot_be_stored(api: InProcessApi) -> None:
    await create(api, make_config_map("a"))
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        await create(api, make_config_map("a"))
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await create(api, make_config_map("a", namespace="nowhere"))
    with pytest.raises(Invalid, match="name or generateName is required"):
        await create(api, make_config_map(""))
    with pytest.raises(Invalid, match=r"metadata\.name: Invalid value"):
        await create(api, make_config_map("Not_A_Name"))
    versioned = make_config_map("b")
    versioned["metadata"]["resourceVersion"] = "7"
    with pytest.raises(BadRequest, match="resourceVersion should not be set"):
        await create(api, versioned)
    with pytest.raises(RequestTooLarge):
        await create(api, make_pod(hostname="h", containers=[_container(args=["x" * 1_600_000])]))


def _container(**fields: Any) -> Object:
    return {"name": "main", "image": "x", **fields}


async def test_generated_names_differ(api: InProcessApi) -> None:
    obj = make_config_map("")
    obj["metadata"] = {"namespace": "default", "generateName": "n-"}
    made = await asyncio.gather(*(create(api, obj) for _ in range(20)))
    names = {one["metadata"]["name"] for one in made}
    assert len(names) == 20
    assert all(name.startswith("n-") and len(name) == 7 for name in names)


async def test_dry_run_stores_nothing(registry: Registry, api: InProcessApi) -> None:
    before = registry.resource_version
    made = await api.create(kinds.CONFIG_MAP, make_config_map("a"), field_manager="m", dry_run=True)
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    assert registry.resource_version == before
    with pytest.raises(NotFound):
        await api.get(kinds.CONFIG_MAP, "default", "a")


PATCHES = [
    (PatchType.MERGE, {"data": {"x": None, "y": "2"}}, {"y": "2"}),
    (PatchType.STRATEGIC, {"data": {"y": "2"}}, {"x": "1", "y": "2"}),
    (PatchType.JSON, [{"op": "replace", "path": "/data/x", "value": "3"}], {"x": "3"}),
    (
        PatchType.APPLY,
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"y": "2"}},
        {"x": "1", "y": "2"},
    ),
]


@pytest.mark.parametrize(("patch_type", "body", "data"), PATCHES)
async def test_each_patch_type_changes_the_object_once(
    api: InProcessApi, patch_type: PatchType, body: Any, data: dict[str, str]
) -> None:
    made = await create(api, make_config_map("a", x="1"))

    async def patch() -> Object:
        return await api.patch(
            kinds.CONFIG_MAP, "default", "a", body, type=patch_type, field_manager="other"
        )

    first, second = await patch(), await patch()
    assert first["data"] == data
    assert int(first["metadata"]["resourceVersion"]) == int(made["metadata"]["resourceVersion"]) + 1
    assert second == first
    assert "other" in {manager for manager, _, _ in managers(first)}


async def test_patches_that_do_not_fit(api: InProcessApi) -> None:
    await create(api, make_config_map("a", x="1"))
    await create(api, make_trainjob())

    async def patch(kind: kinds.Kind, name: str, body: Any, patch_type: PatchType) -> Object:
        return await api.patch(kind, "default", name, body, type=patch_type, field_manager="m")

    failed_test = [{"op": "test", "path": "/data/x", "value": "2"}]
    with pytest.raises(Invalid):
        await patch(kinds.CONFIG_MAP, "a", failed_test, PatchType.JSON)
    with pytest.raises(BadRequest):
        await patch(kinds.CONFIG_MAP, "a", {"op": "test"}, PatchType.JSON)
    with pytest.raises(RequestTooLarge):
        await patch(kinds.CONFIG_MAP, "a", failed_test * 10_001, PatchType.JSON)
    with pytest.raises(UnsupportedMediaType):
        await patch(kinds.TRAINJOB, "t", {}, PatchType.STRATEGIC)
    with pytest.raises(NotFound, match='configmaps "b" not found'):
        await patch(kinds.CONFIG_MAP, "b", {}, PatchType.MERGE)
    stale = {"metadata": {"resourceVersion": "1"}, "data": {"x": "2"}}
    with pytest.raises(Conflict, match="the object has been modified"):
        await patch(kinds.CONFIG_MAP, "a", stale, PatchType.MERGE)


async def test_concurrent_patches_all_land(api: InProcessApi) -> None:
    await create(api, make_config_map("a"))
    patches = (
        api.patch(
            kinds.CONFIG_MAP,
            "default",
            "a",
            {"data": {f"k{i}": "v"}},
            type=PatchType.MERGE,
            field_manager=f"m{i}",
        )
        for i in range(30)
    )
    await asyncio.gather(*patches)
    live = await api.get(kinds.CONFIG_MAP, "default", "a")
    assert len(live["data"]) == 30


async def test_replace_wants_the_live_resource_version(api: InProcessApi) -> None:
    job = await create(api, make_trainjob())
    await api.replace(
        kinds.TRAINJOB, {**job, "spec": {**job["spec"], "suspend": True}}, field_manager="m"
    )
    with pytest.raises(Conflict, match="Operation cannot be fulfilled on trainjobs"):
        await api.replace(kinds.TRAINJOB, job, field_manager="m")
    with pytest.raises(Invalid, match="must be specified for an update"):
        await api.replace(kinds.TRAINJOB, make_trainjob(), field_manager="m")
    await create(api, make_config_map("a"))
    replaced = await api.replace(
        kinds.CONFIG_MAP, make_config_map("a", x="unconditional"), field_manager="m"
    )
    assert replaced["data"] == {"x": "unconditional"}


async def test_spec_and_status_are_written_apart(api: InProcessApi) -> None:
    job = await create(api, make_trainjob())
    both = {**job, "spec": {**job["spec"], "suspend": True}, "status": {"conditions": []}}
    spec_written = await api.replace(kinds.TRAINJOB, both, field_manager="m")
    assert spec_written["metadata"]["generation"] == 2
    assert "status" not in spec_written
    status = {"jobsStatus": [_jobs_status()]}
    status_written = await api.patch(
        kinds.TRAINJOB,
        "default",
        "t",
        {"spec": {"suspend": False}, "metadata": {"labels": {"a": "b"}}, "status": status},
        type=PatchType.MERGE,
        subresource="status",
        field_manager="controller",
    )
    assert status_written["spec"]["suspend"] is True
    assert status_written["status"] == status
    assert status_written["metadata"]["generation"] == 2
    assert "labels" not in status_written["metadata"]
    assert ("controller", "Update", "status") in managers(status_written)


def _jobs_status() -> Object:
    counts = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
    return {"name": "node", **counts}


async def test_unchanged_write_keeps_the_resource_version(
    registry: Registry, api: InProcessApi
) -> None:
    made = await create(api, make_config_map("a", x="1"))
    again = await api.replace(kinds.CONFIG_MAP, make_config_map("a", x="1"), field_manager="other")
    assert again == made
    assert registry.resource_version == made["metadata"]["resourceVersion"]


async def test_apply_creates_owns_removes_and_conflicts(api: InProcessApi) -> None:
    async def apply(manager: str, *, force: bool = False, **data: str) -> Object:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        return await api.patch(
            kinds.CONFIG_MAP,
            "default",
            "a",
            body,
            type=PatchType.APPLY,
            field_manager=manager,
            force=force,
        )

    made = await apply("one", x="1", y="1")
    assert managers(made) == [("one", "Apply", "")]
    with pytest.raises(Conflict) as refused:
        await apply("two", x="2")
    assert refused.value.details["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "one"',
            "field": ".data.x",
        }
    ]
    forced = await apply("two", force=True, x="2")
    assert forced["data"] == {"x": "2", "y": "1"}
    assert managers(forced) == [("one", "Apply", ""), ("two", "Apply", "")]
    dropped = await apply("one", z="1")
    assert dropped["data"] == {"x": "2", "z": "1"}
    assert await apply("one", z="1") == dropped


@pytest.mark.parametrize("seen", [{"uid": "gone"}, {"resourceVersion": "3"}])
async def test_apply_to_a_lost_object_never_creates(
    api: InProcessApi, seen: dict[str, str]
) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": seen}
    with pytest.raises(Conflict, match="mismatch"):
        await api.patch(
            kinds.CONFIG_MAP, "default", "a", body, type=PatchType.APPLY, field_manager="m"
        )


async def test_apply_of_the_status_touches_the_status_only(api: InProcessApi) -> None:
    await create(api, make_trainjob())
    body = make_trainjob(suspend=True) | {"status": {"jobsStatus": [_jobs_status()]}}
    applied = await api.patch(
        kinds.TRAINJOB,
        "default",
        "t",
        body,
        type=PatchType.APPLY,
        subresource="status",
        field_manager="trainer-status",
        force=True,
    )
    assert applied["status"]["jobsStatus"][0]["name"] == "node"
    assert applied["spec"].get("suspend") is not True
    assert ("trainer-status", "Apply", "status") in managers(applied)


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore"])
async def test_unknown_fields_are_refused_warned_of_or_ignored(
    registry: Registry, mode: Any
) -> None:
    options = WriteOptions(
        field_validation=mode, decode_findings=['duplicate field "spec.suspend"']
    )
    obj = make_trainjob(numNodez=2)
    if mode == "Strict":
        with pytest.raises(BadRequest, match=r'unknown field "spec\.numNodez"'):
            await registry.create(kinds.TRAINJOB, "default", obj, options)
        return
    written = await registry.create(kinds.TRAINJOB, "default", obj, options)
    assert "numNodez" not in written.stored.decode()["spec"]
    expected = ['duplicate field "spec.suspend"', 'unknown field "spec.numNodez"']
    assert list(written.warnings) == (expected if mode == "Warn" else [])


async def test_schema_and_cel_findings_have_paths(api: InProcessApi) -> None:
    bad = make_trainjob(suspend="yes")
    with pytest.raises(Invalid) as refused:
        await create(api, bad)
    assert refused.value.message.startswith('TrainJob.trainer.kubeflow.org "t" is invalid: ')
    assert [cause["field"] for cause in refused.value.details["causes"]] == ["spec.suspend"]
    assert refused.value.details["kind"] == "TrainJob"
    for name, fields in (("9lives", ["<nil>"]), ("ends-", ["metadata.name", "<nil>"])):
        with pytest.raises(Invalid) as refused:
            await create(api, make_trainjob(name))
        assert [cause["field"] for cause in refused.value.details["causes"]] == fields


async def test_kinds_without_effect_are_stored_with_a_warning(registry: Registry) -> None:
    role = {"metadata": {"name": "r"}, "rules": []}
    written = await registry.create(kinds.CLUSTER_ROLE, "", role, WriteOptions())
    assert any("nothing here acts on them" in warning for warning in written.warnings)


def _suspend(request: Request) -> Object:
    return {**request.new, "spec": {**request.new["spec"], "suspend": True}}


def _refuse_forbidden(request: Request) -> Verdict:
    if request.new["spec"].get("runtimeRef", {}).get("name") != "bad":
        return Verdict(warnings=["looked at"])
    return Verdict(errors=[FieldError(Reason.INVALID, "spec.runtimeRef", "bad", "no")])


@pytest.mark.parametrize(
    ("webhook", "error", "text"),
    [
        (
            "v.trainer",
            Forbidden,
            'admission webhook "v.trainer" denied the request: spec.runtimeRef: Invalid value',
        ),
        ("", Invalid, 'TrainJob.trainer.kubeflow.org "t" is invalid: spec.runtimeRef'),
    ],
)
async def test_admission_defaults_and_refuses(
    tmp_path: Path, webhook: str, error: type[Exception], text: str
) -> None:
    rules = Admission(default=_suspend, validate=_refuse_forbidden, webhook_name=webhook)
    registry = await open_registry(tmp_path / "data", admission={kinds.TRAINJOB: rules})
    try:
        with pytest.raises(error, match="Invalid value") as refused:
            await registry.create(
                kinds.TRAINJOB,
                "default",
                make_trainjob(runtimeRef={"name": "bad"}),
                WriteOptions(),
            )
        assert str(refused.value).startswith(text)
        written = await registry.create(kinds.TRAINJOB, "default", make_trainjob(), WriteOptions())
        assert written.stored.decode()["spec"]["suspend"] is True
        assert list(written.warnings) == ["looked at"]
    finally:
        await registry.close()


async def test_binding_sets_the_node_once(registry: Registry, api: InProcessApi) -> None:
    await create(api, make_pod())
    binding = {"target": {"name": "laptop"}}
    written = await registry.bind_pod("default", "p", binding, WriteOptions())
    pod = written.stored.decode()
    assert pod["spec"]["nodeName"] == "laptop"
    assert pod["status"]["conditions"][0]["type"] == "PodScheduled"
    with pytest.raises(Conflict, match="already assigned"):
        await registry.bind_pod("default", "p", binding, WriteOptions())


async def test_events_are_one_store_with_two_views(api: InProcessApi) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "c-0",
        "action": "Reconciling",
        "reason": "Created",
        "note": "text",
        "type": "Normal",
        "regarding": {"kind": "TrainJob", "name": "t", "namespace": "default"},
    }
    made = await create(api, event)
    assert made["note"] == "text"
    core = await api.get(kinds.EVENT, "default", "e")
    assert (core["apiVersion"], core["message"], core["reportingComponent"]) == ("v1", "text", "c")
    page = await api.list(kinds.EVENT_V1, field_selector="regarding.name=t")
    assert [item["regarding"]["name"] for item in page.items] == ["t"]
    page = await api.list(kinds.EVENT, field_selector="involvedObject.name=other")
    assert list(page.items) == []


async def test_limit_ranges_and_quotas_bound_a_namespace(
    registry: Registry, api: InProcessApi
) -> None:
    limits = [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]
    quota = {"hard": {"pods": "3", "requests.cpu": "2500m"}}
    for kind, spec in ((kinds.LIMIT_RANGE, {"limits": limits}), (kinds.RESOURCE_QUOTA, quota)):
        obj = {"metadata": {"name": "n", "namespace": "default"}, "spec": spec}
        await api.create(kind, obj, field_manager="m")
    made = await create(api, make_pod("first"))
    resources = made["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    big = {"resources": {"limits": {"cpu": "3"}}}
    with pytest.raises(Forbidden, match="maximum cpu usage per Container is 2"):
        await create(api, make_pod("big", containers=[_container(**big)]))
    outcomes = await asyncio.gather(
        *(create(api, make_pod(f"p{number}")) for number in range(3)), return_exceptions=True
    )
    refused = [str(outcome) for outcome in outcomes if isinstance(outcome, Forbidden)]
    assert len(refused) == 2
    assert "exceeded quota: n, requested: requests.cpu=1, used: requests.cpu=2" in refused[0]
    assert registry.count(kinds.POD, "default") == 2


async def test_wrong_shapes_are_refused_by_the_schema(api: InProcessApi) -> None:
    for spec in ("text", ["list"], None, {"containers": "text"}, {"containers": [None]}):
        with pytest.raises(Invalid):
            await create(api, {**make_pod(), "spec": spec})


async def test_jobsets_are_refused_as_their_webhook_does(registry: Registry) -> None:
    job = {"name": "a", "dependsOn": [{"name": "b", "status": "Ready"}], "template": {"spec": {}}}
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"replicatedJobs": [job]},
    }
    pod = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    job["template"] = {"spec": {"template": pod}}
    with pytest.raises(Invalid) as refused:
        await registry.create(kinds.JOBSET, "default", jobset, WriteOptions())
    status = refused.value.to_status()
    text = 'admission webhook "vjobset.kb.io" denied the request: JobSet.jobset.x-k8s.io "j" is invalid'
    assert status["message"].startswith(text)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["details"]["name"] == "j"
    assert status["details"]["kind"] == "JobSet"
    assert status["details"]["causes"][0]["field"].startswith("spec.replicatedJobs")
