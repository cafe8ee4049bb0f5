"""The registry without HTTP: `Api` and `Lister` for controllers that run in the server's process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trainwright.machinery.api import DeleteOptions, ListPage, WatchEvent, WatchType
from trainwright.server.requests import ListOptions, WatchOptions, WriteOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Json, Object
    from trainwright.machinery.api import Handler, PatchType
    from trainwright.server.registry import Registry
    from trainwright.server.store import Committed
    from trainwright.server.stored import Stored


def _copied(obj: Json) -> Json:
    """A deep copy: the registry takes over what it is given."""
    return msgspec.json.decode(msgspec.json.encode(obj))


class InProcessApi:
    """Implements `machinery.api.Api`. Every object that it returns is the caller's own."""

    def __init__(self, registry: Registry, *, user: str = "system:trainwright") -> None:
        self._registry = registry
        self._user = user

    def _options(self, field_manager: str, **more: bool) -> WriteOptions:
        return WriteOptions(field_manager=field_manager, user=self._user, **more)  # type: ignore[arg-type]

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """The committed object; NotFound when there is none."""
        return self._registry.get(kind, namespace, name).decode()

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ListPage:
        """One page; `namespace=""` means all namespaces."""
        options = ListOptions(
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )
        page = self._registry.list(kind, namespace, options)
        items = [stored.decode() for stored in page.items]
        return ListPage(items, page.resource_version, page.continue_token)

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Changes after `resource_version`, bookmarks included; Gone when that is too old."""
        options = WatchOptions(
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            allow_bookmarks=True,
            timeout_s=timeout_s,
        )
        watch = self._registry.watch(kind, namespace, options)
        try:
            async for batch in watch.batches():
                for event in batch:
                    yield WatchEvent(event.type, msgspec.json.decode(event.data))
        finally:
            watch.close()

    async def create(
        self, kind: Kind, obj: Object, *, field_manager: str, dry_run: bool = False
    ) -> Object:
        """POST."""
        namespace = str((obj.get("metadata") or {}).get("namespace") or "")
        options = self._options(field_manager, dry_run=dry_run)
        written = await self._registry.create(kind, namespace, _copied(obj), options)
        return written.stored.decode()

    async def replace(
        self, kind: Kind, obj: Object, *, subresource: str = "", field_manager: str
    ) -> Object:
        """PUT; Conflict when `metadata.resourceVersion` is set and not the live one."""
        metadata = obj.get("metadata") or {}
        written = await self._registry.replace(
            kind,
            str(metadata.get("namespace") or ""),
            str(metadata.get("name") or ""),
            _copied(obj),
            self._options(field_manager),
            subresource=subresource,
        )
        return written.stored.decode()

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Json,
        *,
        type: PatchType,
        subresource: str = "",
        field_manager: str,
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """PATCH of any type; APPLY is server-side apply and creates what is missing."""
        written = await self._registry.patch(
            kind,
            namespace,
            name,
            _copied(body),
            self._options(field_manager, force=force, dry_run=dry_run),
            type=type,
            subresource=subresource,
        )
        return written.stored.decode()

    async def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> Object:
        """DELETE; the object as it goes."""
        written = await self._registry.delete(
            kind, namespace, name, options or DeleteOptions(), self._options("trainwright")
        )
        return written.stored.decode()


class StoreLister:
    """Implements `machinery.api.Lister` straight from the store: never stale, never a copy."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The committed object. Shared: never edit it."""
        return self._registry.lookup(kind, namespace, name)

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        owner_uid: str = "",
    ) -> Sequence[Object]:
        """Objects that have all `labels` and, when given, an owner with `owner_uid`."""
        found = self._registry.candidates(kind, namespace, labels=labels, owner_uid=owner_uid)
        return [self._registry.decoded(stored) for stored in found]

    def subscribe(self, kind: Kind, handler: Handler) -> None:
        """Call `handler` for each object that is there (ADDED) and for each change from now on."""
        registry = self._registry
        for stored in list(registry.candidates(kind)):
            handler(WatchType.ADDED, None, registry.decoded(stored))

        def tell(change: Committed) -> None:
            handler(change.type, self._before(change.before), registry.decoded(change.now))

        registry.subscribe(kind, tell)

    def _before(self, stored: Stored | None) -> Object | None:
        return None if stored is None else self._registry.decoded(stored)
