"""Informers: a cache of some kinds, kept true by list and watch, with indexes and handlers.

Own writes are laid over the cache (`observe_write`) until the watch has caught up, so that a reconcile
never acts on a state older than its own last write.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from trainwright.base.errors import ApiError, Gone, NotFound, Unreachable
from trainwright.base.objects import (
    Object,
    dig,
    labels_of,
    name_of,
    namespace_of,
    resource_version_of,
)
from trainwright.machinery.api import WatchType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.machinery.api import Api, Handler

logger = logging.getLogger(__name__)

PAGE = 500
RETRY_BASE_S = 0.2
RETRY_CAP_S = 30.0

Name = tuple[str, str]


class Informer:
    """The cache of one kind."""

    def __init__(self, api: Api, kind: Kind, namespace: str = "") -> None:
        self._api = api
        self._kind = kind
        self._namespace = namespace
        self._objects: dict[Name, Object] = {}
        self._by_owner: dict[str, set[Name]] = {}
        self._handlers: list[Handler] = []
        self.synced = asyncio.Event()

    def get(self, namespace: str, name: str) -> Object | None:
        """The object as last seen or written."""
        return self._objects.get((namespace, name))

    def list(
        self, namespace: str = "", labels: Mapping[str, str] | None = None, owner_uid: str = ""
    ) -> Sequence[Object]:
        """Objects with all `labels` and, when given, that owner."""
        names = sorted(self._by_owner.get(owner_uid, ())) if owner_uid else self._objects
        objects = (self._objects[name] for name in names)
        return [
            obj
            for obj in objects
            if (not namespace or namespace_of(obj) == namespace)
            and (not labels or labels.items() <= labels_of(obj).items())
        ]

    def subscribe(self, handler: Handler) -> None:
        """Tell `handler` of everything that is there and of every change from now on."""
        self._handlers.append(handler)
        for obj in list(self._objects.values()):
            handler(WatchType.ADDED, None, obj)

    def observe_write(self, written: Object) -> None:
        """Take an answer of the server into the cache, when it is newer than what is there."""
        name = (namespace_of(written), name_of(written))
        known = self._objects.get(name)
        if known is None or _is_newer(written, known):
            self._put(name, written)

    async def run(self) -> None:
        """List, then watch, for ever; every failure is retried with back-off."""
        resource_version, failures = "", 0
        while True:
            try:
                if not resource_version:
                    resource_version = await self._relist()
                resource_version = await self._follow(resource_version)
                failures = 0
            except Gone:
                resource_version = ""
            except (ApiError, Unreachable) as error:
                delay_s = min(RETRY_BASE_S * 2 ** min(failures, 10), RETRY_CAP_S)
                failures += 1
                if isinstance(error, NotFound):
                    resource_version = ""
                logger.info("watch of %s: %s; again in %.1f s", self._kind.resource, error, delay_s)
                await asyncio.sleep(delay_s)

    async def _relist(self) -> str:
        seen: set[Name] = set()
        token = ""
        while True:
            page = await self._api.list(
                self._kind, self._namespace, limit=PAGE, continue_token=token
            )
            for obj in page.items:
                name = (namespace_of(obj), name_of(obj))
                seen.add(name)
                if resource_version_of(self._objects.get(name, {})) != resource_version_of(obj):
                    self._put(name, obj)
            token = page.continue_token
            if not token:
                break
        for name in [name for name in self._objects if name not in seen]:
            self._drop(name, self._objects[name])
        self.synced.set()
        return page.resource_version

    async def _follow(self, resource_version: str) -> str:
        async for event in self._api.watch(
            self._kind, self._namespace, resource_version=resource_version
        ):
            resource_version = resource_version_of(event.object) or resource_version
            name = (namespace_of(event.object), name_of(event.object))
            if event.type is WatchType.DELETED:
                self._drop(name, event.object)
            elif event.type is not WatchType.BOOKMARK:
                known = self._objects.get(name)
                if known is None or _is_newer(event.object, known):
                    self._put(name, event.object)
        return resource_version

    def _put(self, name: Name, obj: Object) -> None:
        old = self._objects.get(name)
        if old is not None:
            self._unindex(name, old)
        self._objects[name] = obj
        for uid in _owner_uids(obj):
            self._by_owner.setdefault(uid, set()).add(name)
        self._tell(WatchType.ADDED if old is None else WatchType.MODIFIED, old, obj)

    def _drop(self, name: Name, last: Object) -> None:
        old = self._objects.pop(name, None)
        if old is None:
            return
        self._unindex(name, old)
        self._tell(WatchType.DELETED, old, last)

    def _unindex(self, name: Name, obj: Object) -> None:
        for uid in _owner_uids(obj):
            names = self._by_owner.get(uid, set())
            names.discard(name)
            if not names:
                self._by_owner.pop(uid, None)

    def _tell(self, change: WatchType, old: Object | None, new: Object) -> None:
        for handler in self._handlers:
            handler(change, old, new)


class InformerSet:
    """`Lister` over HTTP: one informer a kind, made when first asked for."""

    def __init__(self, api: Api, namespace: str = "") -> None:
        self._api = api
        self._namespace = namespace
        self._informers: dict[Kind, Informer] = {}

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object as last seen or written."""
        return self.informer(kind).get(namespace, name)

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        owner_uid: str = "",
    ) -> Sequence[Object]:
        """Objects with all `labels` and, when given, that owner."""
        return self.informer(kind).list(namespace, labels, owner_uid)

    def subscribe(self, kind: Kind, handler: Handler) -> None:
        """Tell `handler` of everything that is there and of every change from now on."""
        self.informer(kind).subscribe(handler)

    def observe_write(self, kind: Kind, written: Object) -> None:
        """Take the server's answer to a write of ours into the cache."""
        self.informer(kind).observe_write(written)

    def informer(self, kind: Kind) -> Informer:
        """The informer of a kind; call before `run` for every kind that will be read."""
        if kind not in self._informers:
            self._informers[kind] = Informer(
                self._api, kind, self._namespace if kind.namespaced else ""
            )
        return self._informers[kind]

    async def run(self) -> None:
        """Keep every informer true until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind, informer in self._informers.items():
                group.create_task(informer.run(), name=f"informer-{kind.plural}")

    async def wait_synced(self) -> None:
        """Return once every informer has listed."""
        for informer in list(self._informers.values()):
            await informer.synced.wait()


def _owner_uids(obj: Object) -> Sequence[str]:
    references: Sequence[Mapping[str, str]] = dig(obj, "metadata", "ownerReferences", default=[])
    return [reference["uid"] for reference in references]


def _is_newer(candidate: Object, known: Object) -> bool:
    new, old = resource_version_of(candidate), resource_version_of(known)
    return int(new) > int(old) if new.isdecimal() and old.isdecimal() else new != old
