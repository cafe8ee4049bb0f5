"""The TrainJob controller's decisions: what was observed goes in, a plan comes out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from trainwright.api.conditions import (
    DEADLINE_EXCEEDED_MESSAGE,
    DEADLINE_EXCEEDED_REASON,
    MAX_NOTED_ERROR_CHARACTERS,
    RESOURCES_FAILED_EVENT,
    RESOURCES_FAILED_PREFIX,
    RUNTIME_NOT_SUPPORTED_REASON,
    TRAINJOB_COMPLETE,
    TRAINJOB_FAILED,
    TRAINJOB_SUSPENDED,
)
from trainwright.api.kinds import CONFIG_MAP, JOBSET, TRAINJOB, find_kind
from trainwright.api.trainjob import TrainingRuntime, TrainJob, parse_runtime, parse_trainjob
from trainwright.api.wellknown import TTL_ANNOTATION
from trainwright.base.errors import TrainwrightError
from trainwright.base.objects import (
    Object,
    annotations_of,
    controller_of,
    dig,
    find_condition,
    is_condition_true,
    is_controlled_by,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainwright.base.times import parse_time
from trainwright.core.findings import Finding
from trainwright.core.plan import (
    Action,
    Apply,
    Event,
    Patch,
    Plan,
    build_delete,
    build_status_patch,
)
from trainwright.core.plugins import find_unsupported_policies
from trainwright.core.trainjob import names
from trainwright.core.trainjob.build import build_job, build_objects
from trainwright.core.trainjob.runtime import (
    SnapshotInvalid,
    build_snapshot,
    find_runtime_kind,
    parse_snapshot,
)
from trainwright.core.trainjob.status import (
    Conditions,
    build_condition,
    is_finished,
    reduce_status,
    set_condition,
    with_conditions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainwright.core.trainjob.settings import TrainJobSettings

MIN_REQUEUE_S = 1.0
LEFT_OVER_RETRY_S = 1.0
"""How soon to look again whether the garbage collector has removed a predecessor's objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What our last apply sent and what the server made of it; equal means: nothing to send."""

    desired: str
    uid: str
    generation: int
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything a plan depends on. Absences (`jobset`, `snapshot`) must be seen live."""

    trainjob: Object
    jobset: Object | None = None
    """The JobSet of the TrainJob's name, whoever owns it."""
    snapshot: Object | None = None
    """The ConfigMap of the snapshot's name, whoever owns it; its data only if `reads_snapshot`."""
    runtime: Object | None = None
    """The live runtime; only read while there is no snapshot."""
    children: tuple[Object, ...] = ()
    """Other objects that the TrainJob controls, as the lister shows them."""
    applied: Mapping[str, Applied] = field(default_factory=dict)
    """Our last apply of each object, by `key_of`, as far as this process knows it."""


class _Blocked(TrainwrightError):
    """The objects cannot be built; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(str(finding))


class _LeftOver(TrainwrightError):
    """An object of a deleted TrainJob of the same name is still there."""


def plan_trainjob(observed: Observed, settings: TrainJobSettings, now: datetime) -> Plan:
    """Decide one pass over one TrainJob.

    Source: Trainer 2.3, reconcile of TrainJobs. Differs: finished jobs stay finished, a deadline's
    delete is repeated until the JobSet is gone, foreign JobSets are left alone, and what is wrong
    is said in a condition of ours for as long as it is.
    """
    trainjob = observed.trainjob
    if is_deleting(trainjob):
        return Plan()
    try:
        view = parse_trainjob(trainjob)
    except TrainwrightError as error:
        return _plan_blocked(trainjob, None, _finding(trainjob, "InvalidField", str(error)), now)
    if not view.is_ours:
        return Plan()
    jobset = observed.jobset if _is_own(observed.jobset, trainjob) else None
    status = reduce_status(trainjob, jobset, now)
    after = trainjob | {"status": status}
    if is_finished(after):
        return _plan_finished(observed, after, jobset, now)
    if find_runtime_kind(view.runtime_ref) is None:
        return _plan_unknown_runtime(view, status, now)
    remaining_s = find_remaining_s(after, now)
    if remaining_s is not None and remaining_s < 0:
        return _plan_deadline(trainjob, jobset, status, now)
    try:
        actions = _plan_objects(observed, view, settings)
    except _LeftOver:
        return Plan(status=_status(trainjob, status), requeue_after_s=LEFT_OVER_RETRY_S)
    except _Blocked as error:
        return _plan_blocked(trainjob, status, error.finding, now)
    requeue_s = None if remaining_s is None else max(remaining_s, MIN_REQUEUE_S)
    return Plan(actions=actions, status=_status(trainjob, status), requeue_after_s=requeue_s)


def reads_snapshot(trainjob: Object, jobset: Object | None) -> bool:
    """Whether a plan looks into the snapshot: to build a JobSet, or for a finished job's time.

    Args:
        trainjob: as observed.
        jobset: the JobSet of its name, if there is one.
    """
    try:
        view = parse_trainjob(trainjob)
    except TrainwrightError:
        return False
    if not view.is_ours or is_deleting(trainjob):
        return False
    own = jobset if _is_own(jobset, trainjob) else None
    if is_finished(trainjob) or _has_ended(own):
        return find_ttl_s(trainjob) is None
    return _wants_apply(view, own)


def plan_refusal(trainjob: Object, planned: Plan, text: str, now: datetime) -> Plan:
    """What to write when the server refused an action of `planned` with `text`.

    The status is the planned one with a condition of ours; the next pass that succeeds drops it.
    """
    status = dict(trainjob.get("status") or {})
    if planned.status is not None:
        changes = planned.status.patch["status"]
        status |= {key: value for key, value in changes.items() if value is not None}
    return _plan_blocked(trainjob, status, _finding(trainjob, "ObjectsRefused", text), now)


def key_of(obj: Object) -> str:
    """Tells one of a TrainJob's objects from the others."""
    return f"{obj['kind']}/{name_of(obj)}"


def record_apply(desired: Object, live: Object) -> Applied:
    """What to remember of an apply that succeeded: what was sent, and the object as it then was."""
    return Applied(
        desired=_digest(desired),
        uid=uid_of(live),
        generation=dig(live, "metadata", "generation", default=0),
        metadata=_digest([dict(labels_of(live)), dict(annotations_of(live))]),
    )


def find_remaining_s(trainjob: Object, now: datetime) -> float | None:
    """Seconds until the active deadline, negative after it; None when it does not count.

    The clock starts at creation and again at each resume. Source: Trainer 2.3, deadline.
    """
    deadline_s = dig(trainjob, "spec", "activeDeadlineSeconds")
    if not deadline_s or dig(trainjob, "spec", "suspend") or is_finished(trainjob):
        return None
    start = dig(trainjob, "metadata", "creationTimestamp")
    resumed = find_condition(trainjob, TRAINJOB_SUSPENDED)
    if resumed is not None and resumed.get("status") == "False":
        start = resumed.get("lastTransitionTime")
    if not start:
        return None
    return (parse_time(start) + timedelta(seconds=deadline_s) - now).total_seconds()


def find_ttl_s(*objects: Object | None) -> int | None:
    """The time to live after the end, from the first object that says one (job before runtime)."""
    for obj in objects:
        text = annotations_of(obj or {}).get(TTL_ANNOTATION)
        if text is not None and text.isascii() and text.isdigit():
            return int(text)
    return None


def _plan_objects(
    observed: Observed, view: TrainJob, settings: TrainJobSettings
) -> tuple[Action, ...]:
    if observed.jobset is not None and not _is_own(observed.jobset, observed.trainjob):
        _refuse_foreign(observed.jobset, observed.trainjob)
    if observed.snapshot is not None and not _wants_apply(view, observed.jobset):
        return ()  # a running JobSet is never applied again: its snapshot may rest
    runtime, actions = _resolve_runtime(observed, view)
    unsupported = find_unsupported_policies(runtime.ml_policy, runtime.spec.pod_group_policy)
    if unsupported:
        text = f'{runtime.kind.kind} "{runtime.name}" asks for {", ".join(unsupported)}'
        raise _Blocked(_finding(observed.trainjob, "PolicyNotSupported", text))
    if not _wants_apply(view, observed.jobset):
        return actions
    try:
        objects = build_objects(build_job(view, runtime, settings=settings))
    except (TrainwrightError, ValueError) as error:
        raise _Blocked(_finding(observed.trainjob, "ObjectsNotBuilt", str(error))) from error
    return actions + tuple(
        action for obj in objects if (action := _plan_apply(obj, observed)) is not None
    )


def _resolve_runtime(
    observed: Observed, view: TrainJob
) -> tuple[TrainingRuntime, tuple[Action, ...]]:
    if observed.snapshot is not None:
        if _is_left_over(observed.snapshot, observed.trainjob):
            raise _LeftOver
        try:
            return parse_snapshot(observed.snapshot, view), ()
        except SnapshotInvalid as error:
            raise _Blocked(_finding(observed.trainjob, "SnapshotInvalid", str(error))) from error
    if observed.runtime is None:
        ref = view.runtime_ref
        text = f'{ref.kind} "{ref.name}" not found'
        raise _Blocked(_finding(observed.trainjob, "RuntimeNotFound", text, "spec.runtimeRef"))
    runtime = parse_runtime(observed.runtime)
    return runtime, (Apply(kind=CONFIG_MAP, obj=build_snapshot(view, runtime)),)


def _wants_apply(view: TrainJob, jobset: Object | None) -> bool:
    """A running JobSet is never applied again; a suspended one always follows the TrainJob."""
    if jobset is None or view.is_suspended:
        return not (jobset is not None and is_deleting(jobset))
    return bool(dig(jobset, "spec", "suspend")) and not is_deleting(jobset)


def _has_ended(jobset: Object | None) -> bool:
    return jobset is not None and any(
        is_condition_true(jobset, theirs) for theirs, _ours in names.TERMINAL
    )


def _plan_apply(obj: Object, observed: Observed) -> Apply | None:
    kind = find_kind(obj["apiVersion"], obj["kind"])
    if kind is None:
        raise ValueError(f"{obj['apiVersion']} {obj['kind']} is no kind that can be applied")
    live = _find_live(obj, observed)
    if live is None:
        return Apply(kind=kind, obj=obj)
    if observed.applied.get(key_of(obj)) == record_apply(obj, live):
        return None
    return Apply(kind=kind, obj=obj, uid=uid_of(live))


def _find_live(obj: Object, observed: Observed) -> Object | None:
    if obj["kind"] == JOBSET.kind:
        return observed.jobset
    return next((child for child in observed.children if key_of(child) == key_of(obj)), None)


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def _refuse_foreign(jobset: Object, trainjob: Object) -> None:
    if _is_left_over(jobset, trainjob):
        raise _LeftOver
    owner = controller_of(jobset)
    whose = f"belongs to {owner.get('kind')} {owner.get('name')}" if owner else "has no owner"
    text = f"JobSet {namespace_of(jobset)}/{name_of(jobset)} {whose} and is left alone"
    raise _Blocked(_finding(trainjob, "JobSetForeign", text))


def _is_own(obj: Object | None, trainjob: Object) -> bool:
    return obj is not None and is_controlled_by(obj, trainjob)


def _is_left_over(obj: Object, trainjob: Object) -> bool:
    """Whether the object belonged to an earlier TrainJob of this name, and is about to go."""
    owner = controller_of(obj)
    return (
        owner is not None
        and owner.get("kind") == TRAINJOB.kind
        and owner.get("name") == name_of(trainjob)
        and owner.get("uid") != uid_of(trainjob)
    )


def _plan_finished(observed: Observed, after: Object, jobset: Object | None, now: datetime) -> Plan:
    trainjob = observed.trainjob
    actions: tuple[Action, ...] = ()
    failed = find_condition(after, TRAINJOB_FAILED)
    if failed is not None and failed.get("reason") == DEADLINE_EXCEEDED_REASON:
        actions = _plan_delete(jobset)
    left_s = _find_left_to_live_s(observed, after, now)
    if left_s is not None and left_s <= 0:
        return Plan(actions=(build_delete(TRAINJOB, trainjob, as_seen=True),))
    return Plan(actions=actions, status=_status(trainjob, after["status"]), requeue_after_s=left_s)


def _find_left_to_live_s(observed: Observed, after: Object, now: datetime) -> float | None:
    runtime = None
    if observed.snapshot is not None:
        try:
            view = parse_trainjob(observed.trainjob)
            runtime = parse_snapshot(observed.snapshot, view).obj
        except TrainwrightError:
            runtime = None
    ttl_s = find_ttl_s(observed.trainjob, runtime)
    ends = [
        parse_time(condition["lastTransitionTime"])
        for kind in (TRAINJOB_COMPLETE, TRAINJOB_FAILED)
        if is_condition_true(after, kind) and (condition := find_condition(after, kind))
    ]
    if ttl_s is None or not ends:
        return None
    return (min(ends) + timedelta(seconds=ttl_s) - now).total_seconds()


def _plan_deadline(trainjob: Object, jobset: Object | None, status: Object, now: datetime) -> Plan:
    failed = build_condition(
        TRAINJOB_FAILED,
        status=True,
        reason=DEADLINE_EXCEEDED_REASON,
        message=DEADLINE_EXCEEDED_MESSAGE,
        now=now,
    )
    status = with_conditions(status, set_condition(_conditions(status), failed))
    return Plan(actions=_plan_delete(jobset), status=_status(trainjob, status))


def _plan_delete(jobset: Object | None) -> tuple[Action, ...]:
    if jobset is None or is_deleting(jobset):
        return ()
    return (build_delete(JOBSET, jobset, as_seen=True),)


def _plan_unknown_runtime(view: TrainJob, status: Object, now: datetime) -> Plan:
    failed = build_condition(
        TRAINJOB_FAILED,
        status=True,
        reason=RUNTIME_NOT_SUPPORTED_REASON,
        message=f"unsupported runtime: {view.runtime_ref.key}",
        now=now,
    )
    status = with_conditions(status, set_condition(_conditions(status), failed))
    return Plan(status=_status(view.obj, status))


def _plan_blocked(trainjob: Object, status: Object | None, finding: Finding, now: datetime) -> Plan:
    """Say what is wrong: a condition of ours, an event, and an error that is retried."""
    status = dict((trainjob.get("status") if status is None else status) or {})
    condition = build_condition(
        names.own_condition_type(finding.code),
        status=True,
        reason=finding.code,
        message=finding.evidence or str(finding),
        now=now,
    )
    kept = tuple(c for c in _conditions(status) if not names.is_own_condition(c.get("type")))
    before = find_condition(trainjob, condition["type"])
    if before is not None:
        condition["lastTransitionTime"] = before.get("lastTransitionTime")
    status["conditions"] = [*kept, condition]
    text = str(finding)
    if len(text) > MAX_NOTED_ERROR_CHARACTERS:
        text = text[:MAX_NOTED_ERROR_CHARACTERS] + " ..."
    note = RESOURCES_FAILED_PREFIX + text
    event = Event(type="Warning", reason=RESOURCES_FAILED_EVENT, note=note)
    return Plan(status=_status(trainjob, status), events=(event,), error=str(finding))


def _conditions(status: Object) -> Conditions:
    return tuple(status.get("conditions") or ())


def _status(trainjob: Object, status: Object) -> Patch | None:
    return build_status_patch(TRAINJOB, trainjob, status)


def _finding(trainjob: Object, code: str, evidence: str, path: str = "") -> Finding:
    subject = f"{TRAINJOB.kind} {namespace_of(trainjob)}/{name_of(trainjob)}"
    return Finding(code=code, subject=subject, path=path, evidence=evidence)
