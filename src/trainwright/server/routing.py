"""From a REST path to what it names: a collection, an object or a subresource of a served kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.base.errors import MethodNotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.server.requests import ServedKind

    FindServed = Callable[[str, str, str], ServedKind | None]

NAMESPACE_SUBRESOURCES = ("status", "finalize")
"""`/namespaces/x/status` is about the namespace; any other third part names a resource in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a path names. `name` is empty for a collection, `namespace` for all of them."""

    served: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def kind(self) -> Kind:
        """The kind as it is served."""
        kind: Kind = self.served.kind
        return kind


def find_route(parts: Sequence[str], find_served: FindServed) -> Route | None:
    """Read `api/v1/…` or `apis/group/version/…`; None when no served kind is behind it."""
    match parts:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return None
    namespace, rest = _split_namespace(group, rest)
    if len(rest) > 3:
        return None
    plural, name, subresource = [*rest, "", ""][:3]
    served = find_served(group, version, plural)
    if served is None:
        return None
    route = Route(served=served, namespace=namespace, name=name, subresource=subresource)
    return route if _fits_scope(route) else None


def _split_namespace(group: str, rest: list[str]) -> tuple[str, list[str]]:
    if rest[0] != "namespaces" or len(rest) < 3:
        return "", rest
    if group == "" and rest[2] in NAMESPACE_SUBRESOURCES and len(rest) == 3:
        return "", rest
    return rest[1], rest[2:]


def _fits_scope(route: Route) -> bool:
    if not route.kind.namespaced:
        return not route.namespace
    return bool(route.namespace) or not route.name


def find_verb(route: Route, method: str, *, watching: bool) -> str:
    """The Kubernetes verb of a request.

    Raises:
        MethodNotAllowed: the path is there, but not for this method.
    """
    verb = _VERBS.get((method, bool(route.name)))
    if verb == "list" and watching:
        verb = "watch"
    across = route.kind.namespaced and not route.namespace
    if verb is None or (across and verb not in {"list", "watch"}):
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    return verb


_VERBS = {
    ("GET", False): "list",
    ("HEAD", False): "list",
    ("POST", False): "create",
    ("DELETE", False): "deletecollection",
    ("GET", True): "get",
    ("HEAD", True): "get",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
}
