"""What is served, as documents that are built once and kept until a CRD comes or goes."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Any

import msgspec

import trainwright
from trainwright.api.kinds import REVIEW_KINDS
from trainwright.server import discovery
from trainwright.server.discovery import REVIEW_VERBS, Resource
from trainwright.server.http import Answer
from trainwright.server.http_errors import refuse_path
from trainwright.server.negotiation import DISCOVERY_SHAPES, PLAIN_JSON, Form, Shape, choose_form
from trainwright.server.openapi import build_document, build_index, group_version_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainwright.server.http import HttpRequest
    from trainwright.server.registry import Registry

KUBERNETES_VERSION = "1.36.0"
"""The Kubernetes release whose wire behaviour we follow."""


def build_version() -> dict[str, str]:
    """`/version`; kubectl compares it with its own."""
    major, minor, _ = KUBERNETES_VERSION.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{KUBERNETES_VERSION}+trainwright.{trainwright.__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{sys.version_info.major}.{sys.version_info.minor}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{platform.machine()}",
    }


class Catalogue:
    """Discovery and OpenAPI of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kept: dict[str, bytes] = {}
        registry.on_kinds_changed(self._kept.clear)

    def answer_discovery(self, request: HttpRequest, parts: Sequence[str]) -> Answer | None:
        """`/api`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`; None for other paths.

        Raises:
            NotFound: a group or version that is not served.
        """
        form = PLAIN_JSON
        if len(parts) == 1:
            form = choose_form(request.headers.get("accept", ""), DISCOVERY_SHAPES)
        build = self._find_discovery(parts, form)
        if build is None:
            return None
        body = self._keep(f"{'/'.join(parts)} {form.shape}", build)
        return Answer(body=body, content_type=Form(shape=form.shape).content_type)

    def _find_discovery(self, parts: Sequence[str], form: Form) -> Callable[[], Any] | None:
        aggregated = form.shape is Shape.DISCOVERY
        match list(parts):
            case ["api"] if aggregated:
                return lambda: discovery.build_aggregated(self._resources(), core=True)
            case ["apis"] if aggregated:
                return lambda: discovery.build_aggregated(self._resources(), core=False)
            case ["api"]:
                return discovery.build_api_versions
            case ["apis"]:
                return lambda: discovery.build_group_list(self._resources())
            case ["apis", group]:
                return lambda: discovery.build_group(self._resources(), group)
            case ["api", version]:
                return lambda: discovery.build_resource_list(self._resources(), "", version)
            case ["apis", group, version]:
                return lambda: discovery.build_resource_list(self._resources(), group, version)
        return None

    def answer_openapi(self, parts: Sequence[str]) -> Answer:
        """`/openapi/v3` and the documents below it.

        Raises:
            NotFound: another version of OpenAPI, or a group version that is not served.
        """
        match list(parts):
            case ["openapi", "v3"]:
                return Answer(body=self._keep("index", self._build_index))
            case ["openapi", "v3", *rest]:
                return Answer(body=self._document("/".join(rest)))
        raise refuse_path()

    def root_paths(self) -> dict[str, Any]:
        """`/`: where things are."""
        groups = [f"/{path}" for path in self._group_version_paths()]
        fixed = ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
        return {"paths": sorted([*groups, *fixed])}

    def _resources(self) -> list[Resource]:
        served = [Resource(one.kind) for one in self._registry.served_kinds()]
        return served + [Resource(kind, REVIEW_VERBS) for kind in REVIEW_KINDS]

    def _group_version_paths(self) -> list[str]:
        kinds = [one.kind for one in self._registry.served_kinds()]
        return list(dict.fromkeys(group_version_path(kind) for kind in kinds))

    def _build_index(self) -> dict[str, Any]:
        return build_index({path: self._document(path) for path in self._group_version_paths()})

    def _document(self, path: str) -> bytes:
        served = [
            one for one in self._registry.served_kinds() if group_version_path(one.kind) == path
        ]
        build = (lambda: build_document(served, KUBERNETES_VERSION)) if served else (lambda: None)
        return self._keep(f"openapi {path}", build)

    def _keep(self, key: str, build: Callable[[], Any]) -> bytes:
        kept = self._kept.get(key)
        if kept is None:
            document = build()
            if document is None:
                raise refuse_path()
            kept = self._kept[key] = msgspec.json.encode(document)
        return kept
