"""Starting, watching and ending the parts of a manager, around its Lease.

Order of an end: the writing parts finish the keys in work, the Lease is given back, then the rest
ends. When the Lease is lost nothing is finished: writes are refused already, and the process ends.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from trainwright.base.errors import LocalRunError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from trainwright.machinery.lease import LeaderElector, WriteFence
    from trainwright.machinery.metrics import Metrics
    from trainwright.manager.runnable import Runnable

logger = logging.getLogger(__name__)

WRITERS_GRACE_S = 18.0
REST_GRACE_S = 6.0
"""How long parts may finish what they do. Together with the Lease's return it stays below the 30 s
after which Kubernetes kills a Pod."""


class Manager:
    """The parts of one process."""

    def __init__(
        self,
        runnables: Sequence[Runnable],
        *,
        fence: WriteFence,
        metrics: Metrics,
        elector: LeaderElector | None,
        lease: str,
    ) -> None:
        """Without an elector everything runs from the start. `lease` names the Lease in metrics."""
        self._runnables = runnables
        self._fence = fence
        self._elector = elector
        self._leader = metrics.leader.labels(lease)
        self._leader.set(0)
        self._ended: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        self._running: dict[asyncio.Task[Any], Runnable | None] = {}
        self._finish_writing = asyncio.Event()
        self._finish = asyncio.Event()

    async def run(self, stopping: asyncio.Event) -> None:
        """Run until `stopping` is set.

        Raises:
            LeaseLost: another process may write now.
            Exception: what ended a part before its time.
        """
        try:
            for part in self._runnables:
                if not part.needs_lease:
                    self._start(part.run(self._finish), part)
            self._start(self._lead(), None)
            stop = asyncio.create_task(stopping.wait(), name="stopping")
            stop.add_done_callback(self._ended.put_nowait)
            try:
                ended = await self._ended.get()
            finally:
                stop.cancel()
            if ended is not stop:
                self._raise_end(ended)
            await self._end_in_order()
        finally:
            self._fence.close()
            self._leader.set(0)
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _lead(self) -> None:
        """Get the Lease, start the parts that need it, keep it."""
        if self._elector is None:
            self._fence.open()
        else:
            await self._elector.acquire()
        for part in self._runnables:
            if part.needs_lease:
                self._leader.set(1)
                self._start(part.run(self._finish_writing), part)
        if self._elector is not None:
            await self._elector.hold()
        await self._finish.wait()

    async def _end_in_order(self) -> None:
        logger.info("stopping: what is in work is finished")
        self._finish_writing.set()
        await self._wait(
            {task for task, part in self._running.items() if part and part.needs_lease},
            WRITERS_GRACE_S,
        )
        if self._elector is not None:
            await self._elector.release()
        self._fence.close()
        self._leader.set(0)
        self._finish.set()
        await self._wait(
            {task for task, part in self._running.items() if part is not None}, REST_GRACE_S
        )

    async def _wait(self, tasks: set[asyncio.Task[Any]], grace_s: float) -> None:
        if not tasks:
            return
        done, late = await asyncio.wait(tasks, timeout=grace_s)
        for task in late:
            logger.warning("%s did not end within %.0f s", task.get_name(), grace_s)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("%s failed while it ended", task.get_name(), exc_info=error)

    def _raise_end(self, task: asyncio.Task[Any]) -> None:
        error = task.exception()
        if error is not None:
            raise error
        raise LocalRunError(f"{task.get_name()} ended by itself")

    def _start(self, work: Coroutine[Any, Any, None], part: Runnable | None) -> None:
        task = asyncio.create_task(work, name=part.name if part else "leader election")
        self._running[task] = part
        task.add_done_callback(self._ended.put_nowait)
