"""PodSets: what a TrainJob runs, said without any workload API.

One PodSet is a group of equal pods. Plugins read and return PodSets; renderers turn them into a
JobSet (or, in tests, plain text). Environment variables, ports, mounts and volumes are the JSON of
the Pod API, the one spelling of those that every place understands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainwright.api import wellknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trainwright.base.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container of a PodSet. Empty means: not said."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[Object, ...] = ()
    env_from: tuple[Object, ...] = ()
    ports: tuple[Object, ...] = ()
    volume_mounts: tuple[Object, ...] = ()
    resources: Mapping[str, object] | None = None
    """`limits`, `requests` and `claims` as the Pod API has them."""

    def with_env(self, variables: Iterable[Object]) -> Container:
        """Variables set by name: those that exist are replaced in place, new ones go last."""
        return replace(self, env=upsert(self.env, variables, key=_by_name))

    def with_ports(self, ports: Iterable[Object]) -> Container:
        """Ports set by number and protocol, or by name when both have one.

        Differs: upstream 2.3 takes two unnamed ports for the same one.
        """
        result = list(self.ports)
        for port in ports:
            place = next((i for i, old in enumerate(result) if _is_same_port(old, port)), None)
            if place is None:
                result.append(port)
            else:
                result[place] = port
        return replace(self, ports=tuple(result))


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """A group of equal pods with one role."""

    name: str
    ancestor: str = ""
    """The step it stands for: `trainer`, `dataset-initializer`, …; empty for other jobs."""
    count: int
    """Pods of one replica; 0 is legal."""
    replicas: int = 1
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Object, ...] = ()

    @property
    def is_trainer(self) -> bool:
        """Whether the TrainJob's `spec.trainer` is about these pods."""
        return self.ancestor == wellknown.ANCESTOR_TRAINER

    def container(self, name: str) -> Container | None:
        """The regular container of that name."""
        return next((c for c in self.containers if c.name == name), None)

    def with_container(self, name: str, change: Callable[[Container], Container]) -> PodSet:
        """The PodSet with that regular container changed; the same one when it is not there."""
        containers = tuple(change(c) if c.name == name else c for c in self.containers)
        return replace(self, containers=containers)

    def with_any_container(self, name: str, change: Callable[[Container], Container]) -> PodSet:
        """Like `with_container`, but an init container when no regular one has the name."""
        if self.container(name) is not None:
            return self.with_container(name, change)
        changed = tuple(change(c) if c.name == name else c for c in self.init_containers)
        return replace(self, init_containers=changed)

    def has_container(self, name: str) -> bool:
        """Whether a regular or init container has that name."""
        return any(c.name == name for c in (*self.containers, *self.init_containers))


PodSets = tuple[PodSet, ...]


def upsert(
    items: Iterable[Object], changes: Iterable[Object], *, key: Callable[[Object], object]
) -> tuple[Object, ...]:
    """Replace items with the same key in place; append the others in order."""
    merged = {key(item): item for item in items}
    merged.update((key(change), change) for change in changes)
    return tuple(merged.values())


def find_trainer(podsets: PodSets) -> PodSet | None:
    """The PodSet that `spec.trainer` scales: the first with ancestor `trainer`."""
    return next((podset for podset in podsets if podset.is_trainer), None)


def replace_podset(podsets: PodSets, changed: PodSet) -> PodSets:
    """The PodSets with the one of that name replaced."""
    return tuple(changed if podset.name == changed.name else podset for podset in podsets)


def _by_name(item: Object) -> object:
    return item.get("name")


def _is_same_port(one: Object, other: Object) -> bool:
    def number(port: Object) -> tuple[object, object]:
        return port.get("containerPort"), port.get("protocol") or "TCP"

    if number(one) == number(other):
        return True
    return bool(one.get("name")) and one.get("name") == other.get("name")
