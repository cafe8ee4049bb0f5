"""Handlers of what Pods and service accounts have beyond the verbs: log, binding, eviction, token."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trainwright.base.errors import BadRequest, ServiceUnavailable
from trainwright.base.objects import Object, dig
from trainwright.base.times import render_time
from trainwright.machinery.api import DeleteOptions
from trainwright.server.auth import (
    AUDIENCE,
    DEFAULT_TOKEN_LIFETIME_S,
    MIN_TOKEN_LIFETIME_S,
    ServiceAccountToken,
)
from trainwright.server.bodies import decode_body
from trainwright.server.http import Answer, Stream, render_json
from trainwright.server.options import parse_write_options
from trainwright.server.podlogs import has_log, limit_log, parse_log_request

if TYPE_CHECKING:
    from trainwright.server.backing import Backing
    from trainwright.server.http import HttpRequest
    from trainwright.server.routing import Route

TEXT = "text/plain"
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def read_pod_log(backing: Backing, request: HttpRequest, route: Route) -> Answer | Stream:
    """GET pods/log."""
    pod = backing.registry.get(route.kind, route.namespace, route.name).decode()
    options, limit_bytes = parse_log_request(request, pod, backing.clock.now())
    if not has_log(pod, options):
        return Answer(body=b"", content_type=TEXT)
    if backing.logs is None:
        raise ServiceUnavailable("no node runs in this server, so there are no logs")
    if gap := backing.logs.find_gap(pod, options):
        request.warnings.append(gap)
    chunks = limit_log(backing.logs.read_log(pod, options), limit_bytes)
    return Stream(chunks=chunks, content_type=TEXT)


async def bind_pod(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """POST pods/binding."""
    binding = await _read_body(request)
    options = parse_write_options(request, "CreateOptions")
    await backing.registry.bind_pod(route.namespace, route.name, binding, options)
    return render_json(_SUCCESS, 201)


async def evict_pod(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """POST pods/eviction: nothing blocks an eviction here, so it is a delete."""
    eviction = await _read_body(request)
    asked = dig(eviction, "deleteOptions", default={})
    options = parse_write_options(request, "CreateOptions")
    delete = DeleteOptions(
        propagation=asked.get("propagationPolicy"),
        grace_period_s=asked.get("gracePeriodSeconds"),
        uid=dig(asked, "preconditions", "uid"),
        resource_version=dig(asked, "preconditions", "resourceVersion"),
    )
    await backing.registry.delete(route.kind, route.namespace, route.name, delete, options)
    return render_json(_SUCCESS, 201)


async def request_token(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """POST serviceaccounts/token: a signed token for the service account."""
    asked = await _read_body(request)
    stored = backing.registry.get(route.kind, route.namespace, route.name)
    lifetime_s = dig(asked, "spec", "expirationSeconds", default=DEFAULT_TOKEN_LIFETIME_S)
    if not isinstance(lifetime_s, int) or lifetime_s < MIN_TOKEN_LIFETIME_S:
        raise BadRequest(f"spec.expirationSeconds: must be at least {MIN_TOKEN_LIFETIME_S} seconds")
    expires_at = int(backing.clock.now().timestamp()) + lifetime_s
    bound = dig(asked, "spec", "boundObjectRef", default={})
    token = backing.authenticator.make_service_account_token(
        ServiceAccountToken(
            namespace=route.namespace,
            name=route.name,
            uid=stored.uid,
            pod_name=bound.get("name", "") if bound.get("kind") == "Pod" else "",
            pod_uid=bound.get("uid", "") if bound.get("kind") == "Pod" else "",
            audiences=tuple(dig(asked, "spec", "audiences", default=[]) or [AUDIENCE]),
            expires_at=expires_at,
        )
    )
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": route.name, "namespace": route.namespace},
        "spec": {"audiences": [AUDIENCE], "expirationSeconds": lifetime_s} | asked.get("spec", {}),
        "status": {
            "token": token,
            "expirationTimestamp": render_time(datetime.fromtimestamp(expires_at, UTC)),
        },
    }
    return render_json(answer, 201)


async def _read_body(request: HttpRequest) -> Object:
    raw = await request.body()
    if not raw.strip():
        return {}
    value = decode_body(request.headers.get("content-type", ""), raw)
    if not isinstance(value, dict):
        raise BadRequest("the body of the request is no object")
    return value
