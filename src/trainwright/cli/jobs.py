"""Reading a TrainJob together with what belongs to it, and one honest word for how it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainwright.api.conditions import FAILED_CREATE
from trainwright.api.kinds import EVENT_V1, JOB, JOBSET, POD, TRAINJOB
from trainwright.api.schemas.registry import schema_of
from trainwright.api.wellknown import (
    ANCESTOR_LABEL,
    COMPLETION_INDEX_LABEL,
    JOBSET_NAME_LABEL,
    REPLICATED_JOB_NAME_LABEL,
)
from trainwright.base.errors import NotFound
from trainwright.base.objects import (
    Object,
    annotations_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainwright.core.trainjob.status import State, reduce_state
from trainwright.schema.pruning import prune
from trainwright.schema.validation import find_schema_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.client import HttpApi


_WRONG_SHAPE = (AttributeError, KeyError, TypeError, ValueError)
"""What reading raises when a field has another JSON type than this version gives it."""


@dataclass(frozen=True, slots=True)
class JobView:
    """One TrainJob, its JobSet (if any) and its Pods."""

    trainjob: Object
    jobset: Object | None
    pods: Sequence[Object]
    refusal: Object | None = None
    """The newest warning about its JobSet or Jobs, read while it lacks Pods."""

    @property
    def name(self) -> str:
        """The TrainJob's name."""
        return name_of(self.trainjob)

    @property
    def state(self) -> State:
        """The honest state, with its reason; a job that cannot be read does not run."""
        try:
            state = reduce_state(self.trainjob, self.jobset, self.pods)
        except _WRONG_SHAPE:
            message = "its status has a form that this version does not know"
            return State(name="Pending", reason="Unreadable", message=message)
        if self.refusal is None or state.name not in {"Pending", "Running"}:
            return state
        reason, note = self.refusal.get("reason", ""), self.refusal.get("note", "")
        return State(name=state.name, reason=reason, message=note)

    @property
    def lacks_pods(self) -> bool:
        """Whether it should have more Pods than it has: something may refuse them."""
        if self.jobset is None or self.state.name not in {"Pending", "Running"}:
            return False
        try:
            wanted = sum(
                int(dig(job, "replicas", default=1))
                * int(dig(job, "template", "spec", "parallelism", default=1))
                for job in dig(self.jobset, "spec", "replicatedJobs", default=[])
            )
            here = sum(dig(pod, "status", "phase") != "Failed" for pod in self.pods)
        except _WRONG_SHAPE:
            return not self.pods
        return bool(here < wanted)

    @property
    def why(self) -> str:
        """The state's reason and message in one line; empty when nothing is to be said."""
        return ": ".join(part for part in (self.state.reason, self.state.message) if part)

    @property
    def note(self) -> str:
        """What of the TrainJob another version has written; empty as a rule."""
        schema = schema_of(TRAINJOB)
        if schema is None:
            return ""
        wrong = find_schema_errors(schema, self.trainjob)
        if wrong:
            return f"{wrong[0].path} has a form that this version does not know"
        unknown = prune(schema, self.trainjob)[1]
        if unknown:
            return f"this version does not know {', '.join(unknown)}"
        return ""

    @property
    def nodes(self) -> str:
        """Ready (or finished) trainer nodes of those wanted, such as `2/2`."""
        try:
            return self._count_nodes()
        except _WRONG_SHAPE:
            return "?"

    def _count_nodes(self) -> str:
        trainers = [pod for pod in self.pods if is_trainer(pod)]
        wanted = sum(
            int(dig(job, "template", "spec", "parallelism", default=1))
            for job in dig(self.jobset or {}, "spec", "replicatedJobs", default=[])
            if dig(job, "template", "metadata", "labels", ANCESTOR_LABEL) == "trainer"
        )
        if not wanted:
            wanted = dig(self.trainjob, "spec", "trainer", "numNodes", default=len(trainers))
        here = sum(dig(pod, "status", "phase") in {"Running", "Succeeded"} for pod in trainers)
        return f"{here}/{wanted}"

    @property
    def progress(self) -> str:
        """`status.trainerStatus.progressPercentage`, or nothing."""
        percentage = dig(self.trainjob, "status", "trainerStatus", "progressPercentage")
        return "" if percentage is None else f"{percentage}%"

    @property
    def restarts(self) -> int:
        """How often the whole set of Pods was started again."""
        return int(dig(self.jobset or {}, "status", "restarts", default=0))

    @property
    def runtime(self) -> str:
        """The runtime that the TrainJob names."""
        return str(dig(self.trainjob, "spec", "runtimeRef", "name", default=""))


def is_trainer(pod: Object) -> bool:
    """Whether the Pod trains (and is no initializer)."""
    ancestor = labels_of(pod).get(ANCESTOR_LABEL)
    return (
        ancestor == "trainer"
        if ancestor
        else labels_of(pod).get(REPLICATED_JOB_NAME_LABEL) == "node"
    )


def rank_of(pod: Object) -> int:
    """The Pod's completion index."""
    labels, annotations = labels_of(pod), annotations_of(pod)
    return int(labels.get(COMPLETION_INDEX_LABEL) or annotations.get(COMPLETION_INDEX_LABEL) or 0)


def prefix_of(pod: Object) -> str:
    """`node/3`: the replicated job and the Pod's index in it."""
    role = labels_of(pod).get(REPLICATED_JOB_NAME_LABEL) or name_of(pod)
    return f"{role}/{rank_of(pod)}"


async def read_job(api: HttpApi, namespace: str, name: str) -> JobView:
    """One TrainJob with its JobSet and Pods.

    Raises:
        NotFound: naming TrainJobs that are there.
    """
    try:
        trainjob = await api.get(TRAINJOB, namespace, name)
    except NotFound as error:
        raise NotFound(await _describe_missing(api, namespace, name)) from error
    jobset, pods = await asyncio.gather(
        _get_or_none(api, namespace, name),
        api.list_all(POD, namespace, label_selector=f"{JOBSET_NAME_LABEL}={name}"),
    )
    view = JobView(trainjob, jobset, pods)
    if not view.lacks_pods:
        return view
    selector = f"{JOBSET_NAME_LABEL}={name}"
    jobs, warnings = await _list_jobs_and_warnings(api, namespace, selector)
    return replace(view, refusal=find_refusal(view, jobs, warnings))


async def _list_jobs_and_warnings(
    api: HttpApi, namespace: str, selector: str
) -> tuple[Sequence[Object], Sequence[Object]]:
    return await asyncio.gather(
        api.list_all(JOB, namespace, label_selector=selector),
        api.list_all(EVENT_V1, namespace, field_selector="type=Warning"),
    )


def find_refusal(
    view: JobView, jobs: Sequence[Object], warnings: Sequence[Object]
) -> Object | None:
    """Why Pods are missing: the newest warning about the JobSet or a Job of it.

    Where some Pods are there, only a refusal counts that is no older than the newest of them: what
    was refused before that has been made since.
    """
    if view.jobset is None:
        return None
    owner = uid_of(view.jobset)
    uids = {owner} | {
        uid_of(job)
        for job in jobs
        if owner in (row.get("uid") for row in dig(job, "metadata", "ownerReferences", default=[]))
    }
    ours = [event for event in warnings if dig(event, "regarding", "uid") in uids]
    if view.pods:
        newest = max(dig(pod, "metadata", "creationTimestamp", default="") for pod in view.pods)
        ours = [
            event
            for event in ours
            if event.get("reason") == FAILED_CREATE and last_seen(event)[:19] >= newest[:19]
        ]
    return max(ours, key=last_seen, default=None)


def last_seen(event: Object) -> str:
    """When an event was last observed."""
    return str(
        dig(event, "series", "lastObservedTime")
        or event.get("eventTime")
        or event.get("deprecatedLastTimestamp")
        or ""
    )


async def read_jobs(api: HttpApi, namespace: str) -> Sequence[JobView]:
    """Every TrainJob of a namespace (all when ""), with JobSets and Pods, oldest first."""
    trainjobs, jobsets, pods = await asyncio.gather(
        api.list_all(TRAINJOB, namespace),
        api.list_all(JOBSET, namespace),
        api.list_all(POD, namespace, label_selector=JOBSET_NAME_LABEL),
    )
    sets = {(namespace_of(jobset), name_of(jobset)): jobset for jobset in jobsets}
    by_job: dict[tuple[str, str], list[Object]] = {}
    for pod in pods:
        key = (namespace_of(pod), labels_of(pod)[JOBSET_NAME_LABEL])
        by_job.setdefault(key, []).append(pod)
    views = [
        JobView(job, sets.get(key := (namespace_of(job), name_of(job))), by_job.get(key, []))
        for job in trainjobs
    ]
    if any(view.lacks_pods for view in views):
        jobs, warnings = await _list_jobs_and_warnings(api, namespace, JOBSET_NAME_LABEL)
        views = [
            replace(view, refusal=find_refusal(view, jobs, warnings)) if view.lacks_pods else view
            for view in views
        ]
    return sorted(views, key=lambda view: dig(view.trainjob, "metadata", "creationTimestamp"))


async def _get_or_none(api: HttpApi, namespace: str, name: str) -> Object | None:
    try:
        return await api.get(JOBSET, namespace, name)
    except NotFound:
        return None


async def _describe_missing(api: HttpApi, namespace: str, name: str) -> str:
    import difflib

    names = [name_of(job) for job in await api.list_all(TRAINJOB, namespace)]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else "; `trainwright ls` lists them"
    return f'TrainJob "{name}" not found in namespace "{namespace}"{hint}'
