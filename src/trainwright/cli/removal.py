"""Waiting until deleted jobs have left nothing behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from trainwright.api.kinds import JOBSET, POD, TRAINJOB
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.objects import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.client import HttpApi

POLL_S = 0.1


async def wait_gone(api: HttpApi, namespace: str, names: Sequence[str], timeout_s: float) -> bool:
    """Whether the TrainJobs, their JobSets and their Pods are gone within the time."""
    selector = f"{JOBSET_NAME_LABEL} in ({','.join(names)})"
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                pods = await api.list_all(POD, namespace, label_selector=selector)
                owners = [
                    *await api.list_all(TRAINJOB, namespace),
                    *await api.list_all(JOBSET, namespace),
                ]
                if not pods and not any(name_of(owner) in names for owner in owners):
                    return True
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        return False
