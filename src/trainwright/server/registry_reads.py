"""The reading half of the registry: which kinds there are, get, list and watch."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import msgspec

from trainwright.api import kinds
from trainwright.api.kinds import Kind, find_kind
from trainwright.base.errors import (
    Gone,
    InternalError,
    NotFound,
)
from trainwright.machinery.api import WatchType
from trainwright.server import refusals
from trainwright.server.decoded_objects import DecodedObjects
from trainwright.server.listing import (
    Selection,
    list_page,
    parse_revision,
    parse_selection,
    too_large,
)
from trainwright.server.requests import (
    ListOptions,
    RawEvent,
    ServedKind,
    WatchOptions,
)
from trainwright.server.views import view_page, view_stored
from trainwright.server.watchhub import INITIAL_EVENTS_END, Filter, Watch, WatchHub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trainwright.base.objects import Object
    from trainwright.server.crd_registry import ServedTable
    from trainwright.server.store import Committed, Store
    from trainwright.server.stored import Stored, StoredPage
    from trainwright.server.watchhub import WatchHub

_FUTURE_WAIT_S = 3.0
"""How long a read waits for a resourceVersion that has not been given out yet."""
_CRD_RESOURCE = kinds.CUSTOM_RESOURCE_DEFINITION.resource


class RegistryReads:
    """Reads come from memory and never wait. `Registry` adds the writes."""

    def __init__(self, store: Store, served: ServedTable, hub: WatchHub) -> None:
        self._store = store
        self._served = served
        self._hub = hub
        self._decoded = DecodedObjects()
        self._kinds_changed: list[Callable[[], None]] = []
        self._progress = asyncio.Event()
        self._handlers: dict[str, list[Callable[[Committed], None]]] = {}

    @property
    def resource_version(self) -> str:
        """The newest committed resourceVersion of the whole server."""
        return str(self._store.revision)

    def served_kinds(self) -> Sequence[ServedKind]:
        """Every kind served now, built-in ones first."""
        return self._served.all()

    def stored_kinds(self) -> Sequence[Kind]:
        """Every kind served now, in the one version that it is stored in."""
        return self._served.stored

    def find_served(self, group: str, version: str, plural: str) -> ServedKind | None:
        """The kind behind a REST path."""
        return self._served.find(group, version, plural)

    def on_kinds_changed(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever `served_kinds` changed (a CRD came or went): drop caches."""
        self._kinds_changed.append(callback)

    def subscribe(self, kind: Kind, handler: Callable[[Committed], None]) -> None:
        """Call `handler` for each change of the kind, in commit order; it must not block."""
        self._handlers.setdefault(kind.resource, []).append(handler)

    def lookup(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The committed object or None, as admission rules read it. Never edit it."""
        stored = self._find(kind, namespace, name)
        return None if stored is None else self.decoded(stored)

    def decoded(self, stored: Stored) -> Object:
        """The object, shared with everybody who asks: never edit it."""
        return self._decoded.get(stored)

    def candidates(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        owner_uid: str = "",
    ) -> Iterable[Stored]:
        """Objects with all `labels` and an owner of that uid, by index where there is one."""
        index = self._store.index(kind.resource)
        wanted = labels or {}
        found = index.find(wanted, owner_uid=owner_uid)
        for stored in index.all(namespace) if found is None else found:
            if namespace and stored.namespace != namespace:
                continue
            if owner_uid and owner_uid not in stored.owners:
                continue
            if all(stored.labels.get(key) == value for key, value in wanted.items()):
                yield stored

    def count(self, kind: Kind, namespace: str = "") -> int:
        """How many objects there are."""
        return self._store.index(kind.resource).count(namespace)

    def get(self, kind: Kind, namespace: str, name: str) -> Stored:
        """The committed object; NotFound."""
        served = self._of(kind)
        stored = self._find(served.storage or kind, namespace, name)
        if stored is None:
            raise refusals.not_found(kind, name)
        return view_stored(served, stored)

    def list(self, kind: Kind, namespace: str, options: ListOptions) -> StoredPage:
        """One page, sorted by namespace and name; `namespace=""` means all."""
        served = self._of(kind)
        resource = (served.storage or kind).resource
        page = list_page(
            self._store.index(resource),
            namespace,
            options,
            selection=self._selection(served, options.label_selector, options.field_selector),
            history=self._hub.history,
            current=self._store.revision,
            resource=resource,
        )
        return view_page(served, page)

    def _selection(self, served: ServedKind, labels: str, fields: str) -> Selection:
        if served.storage is None:
            return parse_selection(served, labels, fields, self.decoded)
        return parse_selection(
            served, labels, fields, lambda stored: view_stored(served, stored).decode()
        )

    async def wait_for_revision(self, resource_version: str) -> None:
        """Wait shortly until `resource_version` is reached.

        Raises:
            Timeout: 504 with cause ResourceVersionTooLarge. BadRequest: not a number.
        """
        wanted = parse_revision(resource_version)
        try:
            async with asyncio.timeout(_FUTURE_WAIT_S):
                while self._store.revision < wanted:
                    await self.wait_for_commit()
        except TimeoutError:
            raise too_large(wanted, self._store.revision) from None

    async def wait_for_commit(self) -> None:
        """Return when something more has been committed."""
        self._progress.clear()
        await self._progress.wait()

    def watch(self, kind: Kind, namespace: str, options: WatchOptions) -> Watch:
        """Start a watch; events from now on are kept for it at once.

        Raises:
            Gone: history does not reach back to `resource_version`. Invalid: bad combination.
        """
        served = self._of(kind)
        _check_watch_options(options)
        storage = served.storage or kind
        selection = self._selection(served, options.label_selector, options.field_selector)
        wanted = Filter(
            resource=storage.resource,
            namespace=namespace,
            matches=None if selection.is_everything else selection.matches,
            view=(lambda stored: view_stored(served, stored)) if served.storage else None,
        )
        initial = self._initial_events(served, wanted, options)
        timeout_s = options.timeout_s
        watch = self._hub.open(
            wanted,
            timeout_s=random.uniform(1800, 3600) if timeout_s is None else timeout_s,  # noqa: S311 - spreads reconnects
            bookmark=_bookmarks(kind) if options.allow_bookmarks else None,
        )
        watch.start_with(initial)
        return watch

    def _initial_events(
        self, served: ServedKind, wanted: Filter, options: WatchOptions
    ) -> Sequence[RawEvent]:
        revision = parse_revision(options.resource_version)
        listed = options.send_initial_events
        if listed is None:
            listed = revision == 0
        if not listed:
            if revision > self._store.revision:
                raise Gone(
                    f"resource version {revision} lies in the future ({self._store.revision}); "
                    "list again"
                )
            since = self._hub.history.since(revision, wanted.resource) if revision else ()
            events = (wanted.select(change) for change in since)
            return [event for event in events if event is not None]
        if revision > self._store.revision:
            raise too_large(revision, self._store.revision)
        page = self.list(
            served.kind,
            wanted.namespace,
            ListOptions(
                label_selector=options.label_selector, field_selector=options.field_selector
            ),
        )
        added = [RawEvent(WatchType.ADDED, s.data, s.revision, s) for s in page.items]
        if options.send_initial_events:
            current = self._store.revision
            data = _bookmarks(served.kind)(current, True)
            added.append(RawEvent(WatchType.BOOKMARK, data, current))
        return added

    def _all(self, kind: Kind, namespace: str) -> Iterable[Object]:
        return map(self.decoded, self._store.index(kind.resource).all(namespace))

    def _of(self, kind: Kind) -> ServedKind:
        served = self._served.of(kind)
        if served is None:
            raise NotFound("the server could not find the requested resource")
        return served

    def _find(self, kind: Kind, namespace: str, name: str) -> Stored | None:
        return self._store.index(kind.resource).get((namespace if kind.namespaced else "", name))

    def _resolve(self, resource: str, data: bytes) -> Kind:
        """The kind of a stored object; CRDs come first and say what the rest is."""
        if resource == _CRD_RESOURCE:
            self._served.put(msgspec.json.decode(data))
        head = msgspec.json.decode(data, type=_TypeMeta)
        known = find_kind(head.api_version, head.kind)
        if known is not None:
            return known
        served = [s.kind for s in self._served.all()]
        exact = (k for k in served if (k.api_version, k.kind) == (head.api_version, head.kind))
        # Another release may have stored the kind under a version that this one does not know.
        found = next(exact, None) or next((k for k in served if k.resource == resource), None)
        if found is None:
            raise InternalError(f"no CRD for the stored {head.kind} of {head.api_version}")
        return found


class _TypeMeta(msgspec.Struct):
    api_version: str = msgspec.field(name="apiVersion")
    kind: str


def _check_watch_options(options: WatchOptions) -> None:
    match = options.resource_version_match
    if options.send_initial_events is None:
        if match:
            raise refusals.forbidden_option(
                "ListOptions",
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        return
    if match != "NotOlderThan":
        raise refusals.forbidden_option(
            "ListOptions",
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )


def _bookmarks(kind: Kind) -> Callable[[int, bool], bytes]:
    """How bookmarks of a watch are written."""

    def render(revision: int, initial_end: bool) -> bytes:
        metadata: Object = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        bookmark = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return msgspec.json.encode(bookmark)

    return render
