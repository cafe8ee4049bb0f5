"""Why a job is as it is: what its containers and its warnings say, also of Pods that are gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from trainwright.api.conditions import WORKING_FOLDER_LOST
from trainwright.api.kinds import EVENT_V1, JOB, POD
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.objects import Object, dig, name_of, namespace_of, uid_of
from trainwright.cli.jobs import JobView, last_seen, prefix_of
from trainwright.cli.timeline import find_gone_pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.client import HttpApi

_BACK_OFF = "BackOff"
"""Says that a container failed, and never why."""


async def read_causes(api: HttpApi, view: JobView) -> list[str]:
    """One sentence for each thing that is known to be wrong with a job."""
    if view.state.name == "Complete":
        return describe_failures(view.pods)
    namespace = namespace_of(view.trainjob)
    jobs, warnings = await asyncio.gather(
        api.list_all(JOB, namespace, label_selector=f"{JOBSET_NAME_LABEL}={view.name}"),
        api.list_all(EVENT_V1, namespace, field_selector="type=Warning"),
    )
    return describe_causes(view, jobs, warnings)


def describe_causes(view: JobView, jobs: Sequence[Object], warnings: Sequence[Object]) -> list[str]:
    """What the Pods say; where they say nothing, the newest warning of the job's members.

    A folder that the job was submitted from and that is gone is always told: what follows from it
    looks like an error of the program.
    """
    gone = find_gone_pods(view.trainjob, [name_of(job) for job in jobs], warnings)
    members = (view.trainjob, *([view.jobset] if view.jobset else ()), *jobs, *view.pods)
    uids = gone | {uid_of(member) for member in members}
    ours = [event for event in warnings if dig(event, "regarding", "uid") in uids]
    lost = [event for event in ours if event.get("reason") == WORKING_FOLDER_LOST]
    said = describe_failures(view.pods)
    if not said and view.state.name == "Failed":
        newest = max(ours, key=_weight, default=None)
        if newest is not None and newest not in lost and newest.get("note", "") not in view.why:
            said = [_describe_warning(newest)]
    return [*map(_describe_warning, sorted(lost, key=last_seen)[-1:]), *said]


def describe_failures(pods: Sequence[Object]) -> list[str]:
    """One sentence for each container that ended with an error."""
    sentences: list[str] = []
    for pod in pods:
        for status in dig(pod, "status", "containerStatuses", default=[]):
            ended = dig(status, "state", "terminated") or dig(status, "lastState", "terminated")
            if ended and ended.get("exitCode"):
                reason = ended.get("message") or ended.get("reason") or "Error"
                sentences.append(
                    f"{prefix_of(pod)} exited with code {ended['exitCode']} ({reason.strip()})"
                )
    return sentences


def _weight(event: Object) -> tuple[bool, bool, str]:
    """What a Pod says comes before what is said of its Job; then the newest counts."""
    is_of_pod = dig(event, "regarding", "kind") == POD.kind
    return is_of_pod, event.get("reason") != _BACK_OFF, last_seen(event)


def _describe_warning(event: Object) -> str:
    return f"{dig(event, 'regarding', 'name', default='')}: {event.get('note', '')}"
