"""What a manager answers over HTTP: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from aiohttp import web

from trainwright.api.kinds import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW
from trainwright.base.errors import ApiError, LocalRunError, Unreachable
from trainwright.base.objects import dig
from trainwright.core.configuration.parse import split_address

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.core.configuration.settings import HealthSettings
    from trainwright.machinery.api import Api
    from trainwright.machinery.metrics import Metrics
    from trainwright.manager.runnable import Runnable

logger = logging.getLogger(__name__)

MANAGER = "trainwright"
METRICS_PATH = "/metrics"
REMEMBERED_S = 60.0
"""An answer about a token holds this long."""
REMEMBERED = 1024
SHUTDOWN_S = 3.0


class Endpoint:
    """One address with its paths. A `Runnable`."""

    needs_lease = False

    def __init__(
        self,
        name: str,
        address: str,
        routes: Mapping[str, Callable[[web.Request], Awaitable[web.Response]]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`address` is as `split_address` reads it; port 0 takes a free one."""
        self.name = name
        self._address = address
        self._tls = tls
        self._app = web.Application()
        for path, handler in routes.items():
            self._app.router.add_get(path, handler)

    async def run(self, stopping: asyncio.Event) -> None:
        """Answer until told to stop.

        Raises:
            LocalRunError: the address cannot be listened on.
        """
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        try:
            host, port = split_address(self._address)
            site = web.TCPSite(runner, host or None, port, ssl_context=self._tls)
            try:
                await site.start()
            except OSError as error:
                raise LocalRunError(
                    f"{self.name}: {self._address} cannot be listened on: {error.strerror}; "
                    'choose another address in the configuration, or "0" to turn it off'
                ) from error
            logger.info("%s listens on %s", self.name, self._describe(runner))
            await stopping.wait()
        finally:
            await runner.cleanup()

    def find_unready(self) -> str:
        """Whoever can ask has an answer."""
        return ""

    def _describe(self, runner: web.AppRunner) -> str:
        scheme = "http" if self._tls is None else "https"
        host, port = runner.addresses[0][:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def build_probes(settings: HealthSettings, runnables: Sequence[Runnable]) -> Endpoint:
    """The probes, under their usual and their configured names."""

    async def live(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(_request: web.Request) -> web.Response:
        reasons = [f"{part.name}: {why}" for part in runnables if (why := part.find_unready())]
        if reasons:
            return web.Response(status=500, text="\n".join([*reasons, "not ready"]))
        return web.Response(text="ok")

    routes = {f"/{name}": live for name in ("healthz", settings.liveness_name)}
    routes |= {f"/{name}": ready for name in ("readyz", settings.readiness_name)}
    return Endpoint("probes", settings.bind_address, routes)


def build_metrics(
    address: str, metrics: Metrics, tls: ssl.SSLContext | None, readers: Readers | None
) -> Endpoint:
    """`/metrics`, for everybody or for those whom `readers` lets in."""

    async def render(request: web.Request) -> web.Response:
        if readers is not None:
            refusal = await readers.find_refusal(request.headers.get("Authorization", ""))
            if refusal is not None:
                status, text = refusal
                return web.Response(status=status, text=text)
        return web.Response(
            body=metrics.render(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    return Endpoint("metrics", address, {METRICS_PATH: render}, tls)


class Readers:
    """Who may read the metrics: whoever may `get` that path, as the API server says."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[bytes, tuple[float, tuple[int, str] | None]] = {}

    async def find_refusal(self, authorization: str) -> tuple[int, str] | None:
        """Status and text of a refusal; None lets the reader in."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return 401, "Unauthorized: a bearer token is needed"
        digest = hashlib.sha256(token.encode()).digest()
        now = self._clock.monotonic()
        until, known = self._known.get(digest, (0.0, None))
        if now < until:
            return known
        try:
            refusal = await self._ask(token.strip())
        except (ApiError, Unreachable) as error:
            logger.warning("a reader of the metrics could not be looked up: %s", error)
            return 500, "the API server does not say who this is"
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[digest] = (now + REMEMBERED_S, refusal)
        return refusal

    async def _ask(self, token: str) -> tuple[int, str] | None:
        review: Object = {
            "apiVersion": TOKEN_REVIEW.api_version,
            "kind": TOKEN_REVIEW.kind,
            "spec": {"token": token},
        }
        answer = await self._api.create(TOKEN_REVIEW, review, field_manager=MANAGER)
        if not dig(answer, "status", "authenticated"):
            return 401, "Unauthorized: the token is not known"
        user: Object = dig(answer, "status", "user", default={})
        access: Object = {
            "apiVersion": SUBJECT_ACCESS_REVIEW.api_version,
            "kind": SUBJECT_ACCESS_REVIEW.kind,
            "spec": {
                "user": user.get("username", ""),
                "uid": user.get("uid", ""),
                "groups": user.get("groups") or [],
                "extra": user.get("extra") or {},
                "nonResourceAttributes": {"path": METRICS_PATH, "verb": "get"},
            },
        }
        answer = await self._api.create(SUBJECT_ACCESS_REVIEW, access, field_manager=MANAGER)
        if not dig(answer, "status", "allowed"):
            return 403, f"Forbidden: {user.get('username', '')} may not get {METRICS_PATH}"
        return None
