"""One address for two servers: progress posts go to the status server, all else to the API server.

A POST to a TrainJob's status means nothing to an API server, so that the two never meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwright.progress.app import ProgressApp
    from trainwright.server.app import App
    from trainwright.server.http import Receive, Scope, Send


class Front:
    """The ASGI app that a plane serves."""

    def __init__(self, app: App, progress: ProgressApp) -> None:
        self._app = app
        self._progress = progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the one it is for."""
        app = self._progress if self._progress.serves(scope) else self._app
        await app(scope, receive, send)

    async def close(self) -> None:
        """End open streams; let what was posted be written."""
        await self._app.close()
        await self._progress.close()
