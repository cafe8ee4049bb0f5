"""Writes reports into TrainJobs, at the pace that the desk sets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from trainwright.api.kinds import TRAINJOB
from trainwright.api.wellknown import STATUS_MANAGER
from trainwright.base.errors import ApiError, Conflict, NotFound, Unreachable
from trainwright.core.progress.report import build_trainer_status
from trainwright.machinery.apply import apply_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainwright.base.times import Clock
    from trainwright.core.progress.desk import Desk, Subject
    from trainwright.core.progress.report import TrainerStatus
    from trainwright.machinery.api import Api

logger = logging.getLogger(__name__)

MEMORY_S = 3600.0
"""A TrainJob that is silent for so long counts as new when it speaks again."""
LAST_WRITES_S = 5.0
"""How long a stop waits for what is left."""


class StatusWriter:
    """Takes reports in and writes the newest of each TrainJob."""

    def __init__(
        self, api: Api, clock: Clock, desk: Desk, forget: Callable[[Subject], None]
    ) -> None:
        self._api = api
        self._clock = clock
        self._desk = desk
        self._forget = forget
        self._news = asyncio.Event()
        self._closed = False

    def put(self, subject: Subject, status: TrainerStatus) -> None:
        """Have a report written when its turn comes."""
        self._desk.put(subject, status, self._clock.monotonic())
        self._news.set()

    async def run(self) -> None:
        """Write until closed; then write what is left."""
        while not self._closed:
            await self._write_due()
        await self._write_rest()

    def close(self) -> None:
        """Let `run` end."""
        self._closed = True
        self._news.set()

    async def _write_due(self) -> None:
        now = self._clock.monotonic()
        taken = self._desk.take(now)
        if taken is not None:
            await self._write(*taken)
            return
        self._desk.forget_before(now - MEMORY_S)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), self._desk.find_wait_s(now))
        self._news.clear()

    async def _write_rest(self) -> None:
        try:
            async with asyncio.timeout(LAST_WRITES_S):
                while taken := self._desk.take(self._clock.monotonic(), all_at_once=True):
                    await self._apply(*taken)
        except (TimeoutError, ApiError, Unreachable) as error:
            logger.warning("%d reports could not be written: %s", len(self._desk) + 1, error)

    async def _write(self, subject: Subject, status: TrainerStatus) -> None:
        try:
            await self._apply(subject, status)
        except (NotFound, Conflict):
            # Gone, or another TrainJob has the name by now.
            self._desk.forget(subject)
            self._forget(subject)
        except (ApiError, Unreachable) as error:
            logger.info("progress of %s/%s: %s", subject.namespace, subject.name, error)
            self._desk.put_back(subject, status, self._clock.monotonic())

    async def _apply(self, subject: Subject, status: TrainerStatus) -> None:
        """Source: Trainer 2.3: applied by force, so what a report leaves out vanishes."""
        body = {
            "apiVersion": TRAINJOB.api_version,
            "kind": TRAINJOB.kind,
            "metadata": {
                "name": subject.name,
                "namespace": subject.namespace,
                "uid": subject.uid,
            },
            "status": {"trainerStatus": build_trainer_status(status)},
        }
        await apply_object(self._api, TRAINJOB, body, STATUS_MANAGER, subresource="status")
