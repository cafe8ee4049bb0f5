"""The same objects through the webhooks and through the embedded server: one verdict, one text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.component.webhooks.clusters import NOW, Caller, Outcome, open_cluster, serving
from tests.unit.core.trainjob.factories import make_job, make_runtime, make_trainjob
from trainwright.api import kinds
from trainwright.api.kinds import find_kind
from trainwright.base.errors import ApiError, NotFound
from trainwright.base.objects import name_of
from trainwright.core.plan import Apply
from trainwright.core.trainjob.plan import Observed, plan_trainjob
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS
from trainwright.machinery.api import PatchType
from trainwright.merge.merge_patch import apply_merge_patch
from trainwright.server.requests import WriteOptions

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.server.inprocess import InProcessApi
    from trainwright.server.registry import Registry

RECORDED = Path(__file__).parents[2] / "golden/recorded"
CASES = sorted(folder for folder in RECORDED.glob("*/") if folder.name[:3].isdigit())
NAMESPACE = "default"


class Both:
    """An embedded server, and webhooks that read its objects."""

    def __init__(self, registry: Registry, api: InProcessApi, caller: Caller) -> None:
        self.registry, self.api, self.caller = registry, api, caller
        self.codes: list[int] = []

    async def create(self, obj: Object) -> Outcome:
        """Create through both; webhooks first, since they see what was there before."""
        kind = find_kind(obj["apiVersion"], obj["kind"])
        assert kind is not None
        metadata = {k: v for k, v in obj["metadata"].items() if k in _SENT}
        if kind.namespaced:
            metadata["namespace"] = NAMESPACE
        obj = {**obj, "metadata": metadata}
        asked = await self.caller.write(kind, obj) if kind in kinds.TRAINER_KINDS else None
        embedded = await self._create(kind, obj)
        self._compare(kind, asked, embedded)
        return embedded

    async def _create(self, kind: Kind, obj: Object) -> Outcome:
        namespace = NAMESPACE if kind.namespaced else ""
        try:
            written = await self.registry.create(kind, namespace, obj, WriteOptions())
        except ApiError as error:
            return Outcome(error.status_code, error.message)
        return Outcome(stored=written.stored.decode(), warnings=list(written.warnings))

    async def change(self, kind: Kind, name: str, patch: Object) -> Outcome:
        """Patch through both."""
        namespace = NAMESPACE if kind.namespaced else ""
        old = await self.api.get(kind, namespace, name)
        asked = await self.caller.write(kind, apply_merge_patch(old, patch), old)
        try:
            stored = await self.api.patch(
                kind, namespace, name, patch, type=PatchType.MERGE, field_manager="t"
            )
            embedded = Outcome(stored=stored, warnings=asked.warnings)
        except ApiError as error:
            embedded = Outcome(error.status_code, error.message, warnings=asked.warnings)
        self._compare(kind, asked, embedded)
        return embedded

    def _compare(self, kind: Kind, asked: Outcome | None, embedded: Outcome) -> None:
        self.codes.append(embedded.code)
        if asked is None:
            return
        assert asked.code == embedded.code, (asked, embedded)
        if asked.code == 422:
            return  # by the schema, which is not the webhooks' affair
        assert asked.message == embedded.message
        if asked.stored is None or embedded.stored is None:
            assert asked.stored is embedded.stored
            return
        assert list(asked.warnings) == list(embedded.warnings)
        if kind == kinds.TRAINJOB:
            assert asked.stored["spec"] == embedded.stored["spec"]
            for part in ("labels", "annotations"):
                sent, kept = (o["metadata"].get(part) for o in (asked.stored, embedded.stored))
                assert sent == kept


_SENT = ("name", "labels", "annotations", "finalizers")


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
async def test_recorded_cases_are_judged_alike(folder: Path, tmp_path: Path) -> None:
    registry, api = await open_cluster(tmp_path / "data")
    try:
        async with serving(tmp_path, api) as caller:
            both = Both(registry, api, caller)
            for obj in yaml.safe_load_all((folder / "input.yaml").read_text()):
                await both.create(obj)
            steps = folder / "steps.yaml"
            for step in yaml.safe_load(steps.read_text()) if steps.exists() else ():
                await _play(both, step)
    finally:
        await registry.close()


async def _play(both: Both, step: dict[str, Any]) -> None:
    """Changes by whoever uses the cluster; there is no controller here."""
    target = step.get("merge") or step.get("delete") or ""
    kind = next((kind for kind in kinds.KINDS if kind.kind == target.partition("/")[0]), None)
    if "create" in step:
        await both.create(step["body"])
    elif kind in kinds.TRAINER_KINDS and kind is not None:
        name = target.partition("/")[2]
        namespace = NAMESPACE if kind.namespaced else ""
        try:
            await both.api.get(kind, namespace, name)
        except NotFound:
            return  # the case refused it
        if "merge" in step:
            await both.change(kind, name, step["body"])
        else:
            await both.api.delete(kind, namespace, name)


def _with(obj: Object, **metadata: Any) -> Object:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def _patches(job: str) -> list[Object]:
    template = {"spec": {"replicatedJobs": [{"name": job, "template": {}}]}}
    return [{"manager": "a.io/b", "trainingRuntimeSpec": {"template": template}}]


OVERRIDES = [{"targetJobs": [{"name": "node"}], "nodeSelector": {"zone": "x"}}]
OBJECTS: list[tuple[int, Object]] = [
    (201, make_trainjob()),
    (201, make_trainjob(trainer={"numNodes": 2, "env": [{"name": "A", "value": "b"}]})),
    (201, make_trainjob(runtimePatches=_patches("node"))),
    (201, make_trainjob(podSpecOverrides=OVERRIDES)),
    (201, make_trainjob(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {}}])),
    (201, make_trainjob(labels={"a": "b"}, annotations={"c": "d"})),
    (403, make_trainjob(runtimePatches=_patches("other"))),
    (403, make_trainjob(runtimePatches=[{"manager": "nobody"}])),
    (403, make_trainjob(podSpecOverrides=OVERRIDES, runtimePatches=_patches("node"))),
    (403, make_trainjob(trainer={"numNodes": -1})),
    (403, make_trainjob(trainer={"env": [{"name": "a=b", "value": "c"}]})),
    (403, make_trainjob(runtimeRef={"kind": "ClusterTrainingRuntime", "name": "none"})),
    (403, make_trainjob(runtimeRef={"kind": "TrainingRuntime", "name": "none"})),
    (403, make_trainjob(runtimeRef={"apiGroup": "x.io", "kind": "Other", "name": "rt"})),
    (403, make_trainjob("a" * 60)),
    (403, _with(make_trainjob(), annotations={"trainwright.dev/run-in": "moon"})),
    (422, make_trainjob(trainer={"numNodes": "two"})),
    (422, make_trainjob(managedBy="nobody.io/x")),
    (201, make_runtime(kind="TrainingRuntime")),
    (201, make_runtime(ml_policy={"torch": {"numProcPerNode": 4}}, kind="TrainingRuntime")),
    (201, _with(make_runtime(), name="old", labels={"trainer.kubeflow.org/support": "deprecated"})),
    (403, _with(make_runtime({**make_job(), "replicas": 2}), name="two")),
    (403, make_runtime(make_job("x", "dataset-initializer"), kind="TrainingRuntime")),
    (
        201,
        _with(
            make_runtime({**make_job(), "replicas": 2}),
            name="off",
            labels={"trainer.kubeflow.org/webhook-validation": "disabled"},
        ),
    ),
]


async def test_good_and_bad_objects_are_judged_alike(tmp_path: Path) -> None:
    registry, api = await open_cluster(tmp_path / "data")
    try:
        async with serving(tmp_path, api) as caller:
            both = Both(registry, api, caller)
            assert (await both.create(make_runtime())).code == 201
            for code, obj in OBJECTS:
                kind = find_kind(obj["apiVersion"], obj["kind"])
                assert kind is not None
                outcome = await both.create(obj)
                assert outcome.code == code, (obj, outcome)
                if outcome.stored is not None:
                    namespace = NAMESPACE if kind.namespaced else ""
                    await api.delete(kind, namespace, name_of(obj))
    finally:
        await registry.close()


async def test_updates_are_held_against_the_snapshot(tmp_path: Path) -> None:
    registry, api = await open_cluster(tmp_path / "data")
    try:
        async with serving(tmp_path, api) as caller:
            both = Both(registry, api, caller)
            await both.create(make_runtime())
            created = await both.create(make_trainjob(suspend=True))
            assert created.stored is not None
            runtime = await api.get(kinds.CLUSTER_TRAINING_RUNTIME, "", "rt")
            observed = Observed(trainjob=created.stored, runtime=runtime, snapshot=None)
            for action in plan_trainjob(observed, DEFAULT_SETTINGS, NOW).actions:
                if isinstance(action, Apply) and action.kind == kinds.CONFIG_MAP:
                    await api.create(kinds.CONFIG_MAP, dict(action.obj), field_manager="t")
            await api.delete(kinds.CLUSTER_TRAINING_RUNTIME, "", "rt")
            resumed = await both.change(kinds.TRAINJOB, "tj", {"spec": {"suspend": False}})
            assert resumed.code == 201
            refused = await both.change(
                kinds.TRAINJOB, "tj", {"spec": {"runtimePatches": _patches("node")}}
            )
            assert refused.code == 403
            again = await both.create(_with(make_trainjob(), name="later"))
            assert again.code == 403
    finally:
        await registry.close()
