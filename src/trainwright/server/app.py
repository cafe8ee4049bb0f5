"""The ASGI app: authentication, then path and verb to one handler, and errors as Status objects."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import POD
from trainwright.base.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    ServiceUnavailable,
)
from trainwright.server import handlers_objects, handlers_pods
from trainwright.server.backing import Backing
from trainwright.server.catalogue import Catalogue, build_version
from trainwright.server.discovery import SUBRESOURCES
from trainwright.server.handlers_reviews import create_review, find_review_kind
from trainwright.server.handlers_watch import watch_objects
from trainwright.server.http import (
    Answer,
    ClientGone,
    HttpRequest,
    Stream,
    read_request,
    render_error,
    render_json,
    render_text,
    send_answer,
    send_stream,
    split_path,
)
from trainwright.server.http_errors import refuse_access, refuse_path
from trainwright.server.podexec import (
    choose_subprotocol,
    parse_exec_request,
    refuse_plain_session,
    refuse_session,
    serve_session,
)
from trainwright.server.routing import Route, find_route, find_verb

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.server.auth import Authenticator, User
    from trainwright.server.http import Receive, Scope, Send
    from trainwright.server.podexec import ExecOptions, ExecProvider, ExecSession
    from trainwright.server.podlogs import LogProvider
    from trainwright.server.registry import Registry

    BeginSession = Callable[[Object, ExecOptions], Awaitable[ExecSession]]
    Handler = Callable[[Backing, HttpRequest, Route], Awaitable[Answer | Stream]]

log = logging.getLogger(__name__)

_HANDLERS: Mapping[str, Handler] = {
    "get": handlers_objects.get_object,
    "list": handlers_objects.list_objects,
    "watch": watch_objects,
    "create": handlers_objects.create_object,
    "update": handlers_objects.replace_object,
    "patch": handlers_objects.patch_object,
    "delete": handlers_objects.delete_object,
    "deletecollection": handlers_objects.delete_collection,
}

_SUBRESOURCE_HANDLERS: Mapping[tuple[str, str], Handler] = {
    ("status", "GET"): handlers_objects.get_object,
    ("status", "PUT"): handlers_objects.replace_object,
    ("status", "PATCH"): handlers_objects.patch_object,
    ("finalize", "PUT"): handlers_objects.replace_object,
    ("log", "GET"): handlers_pods.read_pod_log,
    ("binding", "POST"): handlers_pods.bind_pod,
    ("eviction", "POST"): handlers_pods.evict_pod,
    ("token", "POST"): handlers_pods.request_token,
}


class App:
    """One server's HTTP face; an ASGI application."""

    def __init__(
        self,
        registry: Registry,
        authenticator: Authenticator,
        clock: Clock,
        *,
        logs: LogProvider | None = None,
        execs: ExecProvider | None = None,
    ) -> None:
        self._backing = Backing(
            registry=registry, authenticator=authenticator, clock=clock, logs=logs, execs=execs
        )
        self._catalogue = Catalogue(registry)
        self._shutdown = asyncio.Event()

    async def close(self) -> None:
        """End every open stream cleanly; call before the server stops."""
        self._shutdown.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket."""
        if scope["type"] == "http":
            await self._serve_http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._serve_websocket(scope, receive, send)

    async def _serve_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = read_request(scope, receive)
        try:
            answer = await self._answer(request)
        except ClientGone:
            return
        except ApiError as error:
            answer = render_error(error)
        except Exception:  # the outermost edge of one request
            log.exception("request failed: method=%s path=%s", request.method, request.path)
            answer = render_error(InternalError("the server failed on this request; see its log"))
        if isinstance(answer, Stream):
            await send_stream(request, send, answer, self._shutdown)
        else:
            await send_answer(request, send, answer)

    async def _answer(self, request: HttpRequest) -> Answer | Stream:
        parts = split_path(request.path)
        if parts and parts[0] in {"healthz", "livez", "readyz"}:
            return render_text("ok")
        if parts == ["version"]:
            return render_json(build_version())
        self._authenticate(request)
        if not parts or parts[0] not in {"api", "apis"}:
            return self._answer_fixed(request, parts)
        found = self._catalogue.answer_discovery(request, parts)
        if found is not None:
            return _only_get(request, found)
        review_kind = find_review_kind(parts)
        if review_kind is not None:
            if request.method != "POST":
                raise _method_not_allowed()
            return await create_review(self._backing, request, review_kind)
        return await self._answer_object(request, parts)

    def _authenticate(self, request: HttpRequest) -> None:
        header = request.headers.get("authorization", "")
        request.user = self._backing.authenticator.authenticate(header)

    def _answer_fixed(self, request: HttpRequest, parts: Sequence[str]) -> Answer:
        if not parts:
            return _only_get(request, render_json(self._catalogue.root_paths()))
        if parts[0] == "openapi":
            return _only_get(request, self._catalogue.answer_openapi(parts))
        raise refuse_path()

    async def _answer_object(self, request: HttpRequest, parts: Sequence[str]) -> Answer | Stream:
        route = self._find_route(parts)
        require_namespace(request.user, route, request.method)
        if route.kind == POD and route.subresource in {"exec", "attach", "portforward"}:
            raise self._refuse_session(request, route)
        return await _find_handler(request, route)(self._backing, request, route)

    def _refuse_session(self, request: HttpRequest, route: Route) -> BadRequest:
        pod = self._backing.registry.get(route.kind, route.namespace, route.name).decode()
        if route.subresource == "portforward":
            return BadRequest(
                "ports need no forwarding here: the processes of pods listen on this machine, so "
                "connect to 127.0.0.1 and the port"
            )
        return refuse_plain_session(request, pod, route.subresource)

    def _find_route(self, parts: Sequence[str]) -> Route:
        route = find_route(parts, self._backing.registry.find_served)
        if route is None:
            raise refuse_path()
        return route

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        request = read_request(scope, receive)
        try:
            protocol = choose_subprotocol(scope.get("subprotocols", ()))
            begin, pod, options = self._prepare_exec(request)
        except ApiError as error:
            await _refuse_websocket(send, error)
            return
        try:
            session = await begin(pod, options)
        except ApiError as error:
            await refuse_session(error, send, protocol=protocol)
            return
        await serve_session(session, options, receive, send, protocol=protocol)

    def _prepare_exec(self, request: HttpRequest) -> tuple[BeginSession, Object, ExecOptions]:
        self._authenticate(request)
        route = self._find_route(split_path(request.path))
        if route.kind.plural != "pods" or route.subresource not in {"exec", "attach"}:
            raise refuse_path()
        require_namespace(request.user, route, "POST")
        pod = self._backing.registry.get(route.kind, route.namespace, route.name).decode()
        options = parse_exec_request(request, pod, route.subresource)
        execs = self._backing.execs
        if execs is None:
            raise ServiceUnavailable("no node runs in this server, so there is nothing to run in")
        return execs.exec if route.subresource == "exec" else execs.attach, pod, options


def _find_handler(request: HttpRequest, route: Route) -> Handler:
    if not route.subresource:
        watching = request.method == "GET" and request.flag("watch")
        return _HANDLERS[find_verb(route, request.method, watching=watching)]
    if route.subresource not in route.kind.subresources or route.subresource not in SUBRESOURCES:
        raise refuse_path()
    handler = _SUBRESOURCE_HANDLERS.get((route.subresource, request.method))
    if handler is None:
        raise _method_not_allowed()
    return handler


def require_namespace(user: User, route: Route, method: str) -> None:
    """Keep a service account's token within its namespace; cluster-scoped kinds are read only.

    Raises:
        Forbidden: it reaches out.
    """
    if not user.namespace:
        return
    reads = method in {"GET", "HEAD"}
    inside = route.namespace == user.namespace if route.kind.namespaced else reads
    if not inside:
        where = f'in the namespace "{route.namespace}"' if route.namespace else "at cluster scope"
        why = f'User "{user.name}" cannot {method} resource "{route.kind.plural}" {where}'
        raise refuse_access(route.kind, route.name, why)


def _only_get(request: HttpRequest, answer: Answer) -> Answer:
    if request.method not in {"GET", "HEAD"}:
        raise _method_not_allowed()
    return answer


def _method_not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")


async def _refuse_websocket(send: Send, error: ApiError) -> None:
    answer = render_error(error)
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", answer.content_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
    ]
    start: dict[str, Any] = {
        "type": "websocket.http.response.start",
        "status": answer.code,
        "headers": headers,
    }
    await send(start)
    await send({"type": "websocket.http.response.body", "body": answer.body})
