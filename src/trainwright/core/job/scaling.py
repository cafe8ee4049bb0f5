"""How many pods a running Job should have, and which to make or stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import POD
from trainwright.base.objects import dig, name_of, uid_of
from trainwright.core.job.accounting import build_release
from trainwright.core.job.backoff import find_delay_s
from trainwright.core.job.observed import (
    index_of,
    is_indexed,
    is_ready,
    is_tracked,
    phase_of,
    replaces_only_failed,
)
from trainwright.core.job.pods import (
    FAILURE_COUNT,
    IGNORED_FAILURE_COUNT,
    build_pod,
    build_pod_prefix,
)
from trainwright.core.job.policies import IGNORE, find_failure_match
from trainwright.core.plan import Create, Event, build_delete

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from trainwright.base.objects import Object, ObjectView
    from trainwright.core.job.accounting import Accounts
    from trainwright.core.job.backoff import BackoffSettings
    from trainwright.core.job.memory import JobMemory
    from trainwright.core.job.observed import PodClasses
    from trainwright.core.plan import Action

MAX_CHANGES = 500
"""Pods created or deleted in one pass; upstream's."""


def find_wanted(job: ObjectView, classes: PodClasses, accounts: Accounts) -> int:
    """How many active pods the Job should have."""
    parallelism = int(dig(job, "spec", "parallelism", default=1))
    completions, succeeded = dig(job, "spec", "completions"), accounts.succeeded(job)
    if completions is not None:
        left = int(completions) - succeeded - len(accounts.failed_indexes)
        return min(parallelism, max(left, 0))
    return min(parallelism, len(classes.active)) if succeeded else parallelism


def find_excess(job: ObjectView, classes: PodClasses, accounts: Accounts) -> list[Object]:
    """Active pods to stop: strays and duplicates, then the least useful of too many.

    A pod that is active but not tracked was being stopped when something went wrong.
    """
    excess = [pod for pod in classes.active if not is_tracked(pod)]
    kept = [pod for pod in classes.active if is_tracked(pod)]
    if is_indexed(job):
        seen: set[int] = set()
        limit = dig(job, "spec", "completions", default=0)
        unwanted = accounts.completed | accounts.failed_indexes
        for pod in sorted(kept, key=_usefulness, reverse=True):
            index = index_of(pod)
            if index in seen or index in unwanted or not 0 <= index < limit:
                excess.append(pod)
            seen.add(index)
        doomed = {uid_of(pod) for pod in excess}
        kept = [pod for pod in kept if uid_of(pod) not in doomed]
    too_many = len(kept) - find_wanted(job, classes, accounts)
    if too_many > 0:
        excess += sorted(kept, key=_usefulness)[:too_many]
    return excess[:MAX_CHANGES]


def plan_stop(pods: Iterable[Object]) -> list[Action]:
    """Stop pods without counting them as failures."""
    actions: list[Action] = []
    for pod in pods:
        if is_tracked(pod):
            actions.append(build_release(pod))
        actions.append(build_delete(POD, pod))
    return actions


def plan_creates(
    job: ObjectView,
    pods: Sequence[Object],
    classes: PodClasses,
    accounts: Accounts,
    *,
    memory: JobMemory,
    settings: BackoffSettings,
    now: datetime,
) -> tuple[list[Create], float | None]:
    """Pods that are missing and may start, and seconds until the next one may."""
    need = find_wanted(job, classes, accounts) - len(classes.active)
    if replaces_only_failed(job):
        need -= len(classes.terminating)
    if need <= 0:
        return [], None
    used: set[str] = set()
    creates: list[Create] = []
    waits: list[float] = []
    for index in _find_free_indexes(job, classes, accounts, need):
        wait_s = find_delay_s(job, index, memory, settings, now)
        if wait_s > 0:
            waits.append(wait_s)
            continue
        if len(creates) == min(need, MAX_CHANGES):
            break
        name = memory.choose_name(build_pod_prefix(job, index), index, used)
        used.add(name)
        failures, ignored = _count_failures(job, pods, index)
        pod = build_pod(job, name=name, index=index, failures=failures, ignored=ignored)
        creates.append(Create(kind=POD, obj=pod, may_exist=True))
    return creates, min(waits, default=None)


def render_created(creates: Iterable[Create]) -> list[Event]:
    """The events of pods made."""
    return [
        Event(type="Normal", reason="SuccessfulCreate", note=f"Created pod: {name_of(c.obj)}")
        for c in creates
    ]


def render_deleted(pods: Iterable[Object]) -> list[Event]:
    """The events of pods stopped."""
    return [
        Event(type="Normal", reason="SuccessfulDelete", note=f"Deleted pod: {name_of(pod)}")
        for pod in pods
    ]


def _find_free_indexes(
    job: ObjectView, classes: PodClasses, accounts: Accounts, need: int
) -> list[int]:
    """The indexes that need a pod, lowest first; -1 as often as needed without indexes."""
    if not is_indexed(job):
        return [-1] * need
    busy = classes.active
    if replaces_only_failed(job):
        busy += classes.terminating
    taken = {index_of(pod) for pod in busy} | accounts.completed | accounts.failed_indexes
    limit = int(dig(job, "spec", "completions", default=0))
    return [index for index in range(limit) if index not in taken]


def _count_failures(job: ObjectView, pods: Sequence[Object], index: int) -> tuple[int, int]:
    """How often the index failed so far: counted, and ignored by a rule."""
    if dig(job, "spec", "backoffLimitPerIndex") is None:
        return 0, 0
    failures = ignored = 0
    for pod in pods:
        if index_of(pod) != index or phase_of(pod) != "Failed":
            continue
        skips = find_failure_match(job, pod).action == IGNORE
        before = dig(pod, "metadata", "annotations", default={})
        failures = max(failures, int(before.get(FAILURE_COUNT, 0)) + (not skips))
        ignored = max(ignored, int(before.get(IGNORED_FAILURE_COUNT, 0)) + skips)
    return failures, ignored


def _usefulness(pod: Object) -> tuple[bool, bool, bool, str]:
    """Sorts pods to stop first before pods to keep."""
    created = dig(pod, "metadata", "creationTimestamp", default="")
    older = "".join(chr(0x10FFFF - ord(c)) for c in created)
    return (
        bool(dig(pod, "spec", "nodeName")),
        phase_of(pod) == "Running",
        is_ready(pod),
        older,
    )
