"""The events of a job and of everything it made, as one time-line."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from trainwright.api.kinds import EVENT_V1, JOB, POD
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.objects import Object, dig, name_of, uid_of
from trainwright.cli.exits import Exit
from trainwright.cli.jobs import read_job
from trainwright.cli.options import Output
from trainwright.cli.printing import print_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.client import HttpApi


async def print_timeline(api: HttpApi, namespace: str, name: str, output: Output) -> Exit:
    """Print each event once, oldest first; `wide` names who reported it."""
    view = await read_job(api, namespace, name)
    selector = f"{JOBSET_NAME_LABEL}={name}"
    jobs, found = await asyncio.gather(
        api.list_all(JOB, namespace, label_selector=selector), api.list_all(EVENT_V1, namespace)
    )
    pods = await api.list_all(POD, namespace, label_selector=selector)
    members = [view.trainjob, *([view.jobset] if view.jobset else []), *jobs, *pods]
    uids = {uid_of(member) for member in members}
    names = {(member.get("kind"), name_of(member)) for member in members}
    gone = find_gone_pods(view.trainjob, [name_of(job) for job in jobs], found)
    ours = [event for event in found if _is_about(event, uids | gone, names)]
    ours.sort(key=_moment)
    if output in {Output.JSON, Output.YAML, Output.NAME}:
        print_list(ours, output)
    else:
        for event in ours:
            print(render_event(event, wide=output is Output.WIDE))
    return Exit.OK


def render_event(event: Object, *, wide: bool) -> str:
    """One line: when, how grave, about what, why, how often, and with `wide` reported by whom."""
    count = dig(event, "series", "count") or event.get("deprecatedCount") or 1
    times = f" (x{count})" if count > 1 else ""
    regarding = event.get("regarding") or {}
    source = event.get("reportingController") or dig(event, "deprecatedSource", "component")
    by = f"  [{source}]" if wide and source else ""
    return (
        f"{_moment(event)[:19]}  {event.get('type', ''):7}  "
        f"{regarding.get('kind', '')}/{regarding.get('name', '')}  {event.get('reason', '')}{times}: "
        f"{event.get('note', '')}{by}"
    )


def find_gone_pods(trainjob: Object, jobs: Sequence[str], events: Sequence[Object]) -> set[str]:
    """The uids of pods that are no longer there: why a job failed is said of them.

    Events outlive pods, and have no labels: a pod of one of the `jobs` is known by its name, and by
    having lived after the TrainJob was made, for an earlier one may have had the same name.
    """
    if not jobs:
        return set()
    pattern = re.compile(rf"(?:{'|'.join(map(re.escape, jobs))})-[0-9]+-[a-z0-9]{{5}}")
    made = dig(trainjob, "metadata", "creationTimestamp", default="")
    return {
        uid
        for event in events
        if (uid := dig(event, "regarding", "uid", default=""))
        and dig(event, "regarding", "kind") == POD.kind
        and pattern.fullmatch(dig(event, "regarding", "name", default=""))
        and _moment(event)[:19] >= made[:19]
    }


def _is_about(event: Object, uids: set[str], names: set[tuple[str | None, str]]) -> bool:
    regarding = event.get("regarding") or {}
    return regarding.get("uid") in uids or (
        not regarding.get("uid") and (regarding.get("kind"), regarding.get("name")) in names
    )


def _moment(event: Object) -> str:
    return str(
        event.get("eventTime")
        or event.get("deprecatedFirstTimestamp")
        or dig(event, "metadata", "creationTimestamp", default="")
    )
