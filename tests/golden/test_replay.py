"""The recorded cases, replayed without a server: admission and plan against what was measured.

Each case's input goes object by object through pruning-free schema defaults, admission and
`plan_trainjob`; refusals, JobSets and snapshots are compared with the recorded ones as
`recorded/normal.py` says. Steps after the creation need a server and are not played here.
"""

from __future__ import annotations

import functools
import importlib.util
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from trainwright.api.conditions import TRAINJOB_CONTROLLER_NAME
from trainwright.api.kinds import (
    CLUSTER_TRAINING_RUNTIME,
    JOBSET,
    TRAINING_RUNTIME,
    TRAINJOB,
    Kind,
    find_kind,
)
from trainwright.api.schemas.registry import schema_of
from trainwright.base.errors import Forbidden, render_errors
from trainwright.base.objects import Object, name_of
from trainwright.core.admission import Request
from trainwright.core.plan import Apply
from trainwright.core.trainjob.admission import build_trainer_admission
from trainwright.core.trainjob.plan import Observed, plan_trainjob
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS
from trainwright.schema.defaulting import apply_defaults

if TYPE_CHECKING:
    from types import ModuleType

RECORDED = Path(__file__).parent / "recorded"
NAMESPACE = "golden"
NOW = datetime.now(UTC)
"""`normal.py` replaces times of the last hour only, so this test uses the real time of its start."""

PREFIXES = (
    *range(1, 15), 45, 46, *range(53, 56), *range(57, 67), 68, 77, 78, 80, 83, *range(86, 90)
)  # fmt: skip
CASES = sorted(
    folder
    for folder in RECORDED.glob("*/")
    if folder.name[:3].isdigit() and int(folder.name[:3]) in PREFIXES
)
ADMISSION = build_trainer_admission()


@functools.cache
def normal() -> ModuleType:
    spec = importlib.util.spec_from_file_location("recorded_normal", RECORDED / "normal.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(folder: Path, *names: str) -> Any:
    path = next(folder / name for name in names if (folder / name).exists())
    return yaml.safe_load(path.read_text())


class Replay:
    """One case in an imaginary namespace."""

    def __init__(self, folder: Path) -> None:
        self.about = read(folder, "case.yaml")
        self.input: list[Object] = list(yaml.safe_load_all((folder / "input.yaml").read_text()))
        self.objects: dict[tuple[str, str], Object] = {}
        self.admission: list[Object] = []
        self.built: dict[str, Object] = {}
        self.events: set[str] = set()

    def lookup(self, kind: Kind, namespace: str, name: str) -> Object | None:
        del namespace
        return self.objects.get((kind.kind, name))

    def create(self, obj: Object) -> None:
        kind = find_kind(obj["apiVersion"], obj["kind"])
        assert kind is not None
        schema = schema_of(kind)
        assert schema is not None
        new = apply_defaults(schema, obj)
        uid = f"uid({name_of(new)})"
        new["metadata"] = {**new["metadata"], "namespace": NAMESPACE, "uid": uid}
        if kind not in ADMISSION:
            self.objects[kind.kind, name_of(new)] = new
            self.keep(new)
            return
        rules = ADMISSION[kind]
        request = Request(kind=kind, new=new, old=None, lookup=self.lookup, now=NOW)
        if rules.default is not None:
            new = rules.default(request)
            request = Request(kind=kind, new=new, old=None, lookup=self.lookup, now=NOW)
        assert rules.validate is not None
        verdict = rules.validate(request)
        noted: Object = {"object": f"{kind.kind}/{name_of(new)}", "code": 201}
        if verdict.errors:
            text = f'admission webhook "{rules.webhook_name}" denied the request: '
            status = Forbidden(text + render_errors(verdict.errors)).to_status()
            noted |= {"code": 403, "causes": normal().refusal(status)}
        if verdict.warnings:
            noted["warnings"] = len(verdict.warnings)
        if len(noted) > 2:
            self.admission.append(noted)
        if not verdict.errors:
            self.objects[kind.kind, name_of(new)] = new
            if kind == TRAINJOB:
                self.reconcile(new)

    def reconcile(self, trainjob: Object) -> None:
        ref = trainjob["spec"]["runtimeRef"]
        observed = Observed(
            trainjob=trainjob,
            runtime=self.objects.get((ref["kind"], ref["name"])),
            snapshot=self.objects.get(("ConfigMap", f"{name_of(trainjob)}-runtime-snapshot")),
        )
        plan = plan_trainjob(observed, DEFAULT_SETTINGS, NOW)
        self.events |= {
            f"{event.type} {event.reason} {event.action} {TRAINJOB_CONTROLLER_NAME}"
            for event in plan.events
        }
        stored = dict(trainjob)
        if plan.status is not None:
            stored["status"] = plan.status.patch["status"]
        self.keep(stored)
        for action in plan.actions:
            assert isinstance(action, Apply)
            schema = schema_of(action.kind)
            assert schema is not None
            self.keep(apply_defaults(schema, dict(action.obj)))

    def keep(self, obj: Object) -> None:
        trainjobs = [name for kind, name in self.objects if kind == TRAINJOB.kind]
        swaps = {f"uid({name})": f"<uid of {name}>" for name in trainjobs}
        identity = f"{obj['kind']}/{name_of(obj)}"
        facts = self.about.get("facts", {}).get(identity, {})
        unordered = self.about.get("unordered", [])
        self.built[identity] = normal().normalise(obj, swaps, facts, unordered)


COMPARED = (TRAINJOB.kind, JOBSET.kind, "ConfigMap")


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_creation_is_as_recorded(folder: Path) -> None:
    replay = Replay(folder)
    expected = read(folder, "expected-ours.yaml", "expected.yaml")["steps"][0]
    notes = expected.get("admission", [])
    refused_by_schema = {note["object"] for note in notes if note["code"] == 422}
    for obj in replay.input:
        if f"{obj['kind']}/{name_of(obj)}" not in refused_by_schema:
            replay.create(obj)
    assert replay.admission == [note for note in notes if note["code"] != 422]
    kinds = replay.about.get("objects", COMPARED)
    built = {identity: obj for identity, obj in replay.built.items() if obj["kind"] in kinds}
    wanted = {i: obj for i, obj in expected.get("objects", {}).items() if obj["kind"] in COMPARED}
    assert built == wanted
    assert sorted(replay.events) == expected.get("events", [])


def test_cases_cover_every_runtime_kind() -> None:
    kinds = {obj["kind"] for folder in CASES for obj in Replay(folder).input}
    assert {TRAINJOB.kind, TRAINING_RUNTIME.kind, CLUSTER_TRAINING_RUNTIME.kind} <= kinds
