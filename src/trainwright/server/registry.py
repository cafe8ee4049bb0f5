"""The one way to read and write objects: every door and every kind goes through it."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

import msgspec

from trainwright.api import kinds
from trainwright.api.schemas.registry import schema_of
from trainwright.base.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    FieldError,
    LocalRunError,
    NotFound,
    Reason,
    RequestTooLarge,
)
from trainwright.base.objects import Object, dig, is_deleting, name_of
from trainwright.base.times import render_time
from trainwright.core.admission import build_admission
from trainwright.core.names import MAX_GENERATED_BASE, SUFFIX_ALPHABET, SUFFIX_LENGTH
from trainwright.machinery.api import DeleteOptions, PatchType, WatchType
from trainwright.server import ownership, patching, refusals
from trainwright.server.crd_cleanup import CrdCleanup, hold_for_instances
from trainwright.server.crd_registry import ServedTable, build_served_builtins
from trainwright.server.deletion import (
    check_permanence,
    check_preconditions,
    is_released,
    plan_deletion,
)
from trainwright.server.first_objects import ensure_first_objects
from trainwright.server.key_locks import KeyLocks
from trainwright.server.namespace_limits import NamespaceLimits
from trainwright.server.pipeline import Pipeline, Writing, is_same
from trainwright.server.pod_binding import bind_to_node
from trainwright.server.registry_reads import RegistryReads
from trainwright.server.requests import (
    ListOptions,
    Warnings,
    WriteOptions,
    Written,
)
from trainwright.server.store import Change, Committed, Store
from trainwright.server.stored import Stored, build_stored
from trainwright.server.views import from_view, to_view, view_stored
from trainwright.server.watchhub import History, Watch, WatchHub

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Json
    from trainwright.base.times import Clock
    from trainwright.core.admission import Admission

log = logging.getLogger(__name__)

__all__ = ["Registry", "Watch"]

MAX_OBJECT_BYTES = 3 * 512 * 1024
"""As etcd limits it: an object that a real cluster would not keep is not kept here either."""
_LOST_WITHOUT_HARM = (kinds.EVENT, kinds.LEASE)
"""The last of them may be lost with the machine's power, so they wait for no disk."""
_GENERATE_ATTEMPTS = 8
_CRD_RESOURCE = kinds.CUSTOM_RESOURCE_DEFINITION.resource


class Registry(RegistryReads):
    """Reads come from memory and never wait; writes are async and return after the commit.

    Every method raises `ApiError` subclasses only, ready to be sent as a Status. All methods belong
    to one event loop.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        served: ServedTable,
        admission: Mapping[Kind, Admission],
        history: History | None = None,
    ) -> None:
        super().__init__(store, served, WatchHub(history or History(store.revision)))
        self._clock = clock
        self._pipeline = Pipeline(admission, self.lookup, NamespaceLimits(self._all))
        self._locks = KeyLocks()
        self._submitted: dict[tuple[str, str, str], Object] = {}
        self._cleanup = CrdCleanup(self)
        store.listen(self._on_commit)

    @classmethod
    async def open(
        cls,
        folder: Path,
        clock: Clock,
        *,
        admission: Mapping[Kind, Admission] | None = None,
        history: History | None = None,
    ) -> Registry:
        """Open (or make) the store in `folder` and register every kind we know.

        Raises:
            LocalRunError: another process has the folder, or the schema is newer than we are.
        """
        store = await Store.open(folder)
        served = ServedTable(build_served_builtins(schema_of))
        registry = cls(
            store,
            clock,
            served=served,
            admission=build_admission() if admission is None else admission,
            history=history,
        )
        try:
            store.load(registry._resolve)
            registry._cleanup.resume()
            await ensure_first_objects(registry)
        except BaseException as error:
            await store.close()
            if isinstance(error, ApiError):
                raise LocalRunError(f"{folder}: cannot prepare the store: {error}") from error
            raise
        return registry

    async def close(self) -> None:
        """Finish pending writes, end watches, close the store."""
        self._cleanup.close()
        self._hub.close()
        await self._store.close()

    # Writing

    async def create(
        self, kind: Kind, namespace: str, obj: Object, options: WriteOptions
    ) -> Written:
        """POST. `namespace` is the URL's; the body's must be equal or absent. Takes over `obj`."""
        writing = self._begin(kind, options)
        namespace = namespace if kind.namespaced else ""
        obj = from_view(kind, writing.kind, patching.check_body(writing, namespace, obj))
        metadata = obj["metadata"]
        if metadata.get("name"):
            return await self._create_named(writing, namespace, obj)
        base = metadata.get("generateName")
        if not base:
            error = FieldError(
                Reason.REQUIRED, "metadata.name", detail="name or generateName is required"
            )
            raise refusals.invalid(kind, "", [error])
        for _ in range(_GENERATE_ATTEMPTS):
            suffix = "".join(random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))  # noqa: S311 - a name, no secret
            name = str(base)[:MAX_GENERATED_BASE] + suffix
            candidate = {**obj, "metadata": {**metadata, "name": name}}
            try:
                return await self._create_named(writing, namespace, candidate)
            except AlreadyExists:
                continue
        raise refusals.already_exists(
            kind, str(base), "the server was not able to generate a unique name for the object"
        )

    async def _create_named(self, writing: Writing, namespace: str, obj: Object) -> Written:
        kind = writing.kind
        name = name_of(obj)
        namespace = namespace if kind.namespaced else ""
        async with (
            self._quota_lock(kind, namespace),
            self._locks.hold((kind.resource, namespace, name)),
        ):
            self._check_namespace(kind, namespace, name)
            obj = self._pipeline.prepare_create(writing, namespace, obj)
            if self._find(kind, namespace, name) is not None:
                raise refusals.already_exists(writing.asked, name)
            obj = ownership.track(writing, None, obj)
            return await self._commit(writing, obj, None)

    async def replace(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        obj: Object,
        options: WriteOptions,
        *,
        subresource: str = "",
    ) -> Written:
        """PUT of the object, `status`, or a namespace's `finalize`. Takes over `obj`."""
        writing = self._begin(kind, options, subresource)
        namespace = namespace if kind.namespaced else ""
        obj = from_view(kind, writing.kind, patching.check_body(writing, namespace, obj))
        if name_of(obj) != name:
            raise BadRequest(
                f"the name of the object ({name_of(obj)}) does not match the name on the URL "
                f"({name})"
            )
        async with self._locks.hold((writing.kind.resource, namespace, name)):
            stored = self._existing(writing, namespace, name)
            old = self.decoded(stored)
            patching.check_versions(writing, old, obj, replaces=True)
            return await self._update(writing, stored, old, obj)

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Json,
        options: WriteOptions,
        *,
        type: PatchType,
        subresource: str = "",
    ) -> Written:
        """PATCH of all four types; `body` is decoded JSON (apply: the decoded YAML). Takes it over."""
        writing = self._begin(kind, options, subresource)
        patching.check_patch(writing, type)
        namespace = namespace if kind.namespaced else ""
        quota = self._quota_lock(writing.kind, namespace)
        async with (
            quota if type is PatchType.APPLY else nullcontext(),
            self._locks.hold((writing.kind.resource, namespace, name)),
        ):
            stored = self._find(writing.kind, namespace, name)
            if type is PatchType.APPLY:
                return await self._apply(writing, namespace, name, stored, body)
            if stored is None:
                raise refusals.not_found(kind, name)
            old = self.decoded(stored)
            shown = to_view(kind, old)
            new = patching.apply_patch(writing, type, shown, body)
            new = from_view(kind, writing.kind, patching.check_body(writing, namespace, new))
            if name_of(new) != name:
                raise BadRequest("the name of the object may not be changed by a patch")
            patching.check_versions(writing, old, new)
            return await self._update(writing, stored, old, new)

    async def _apply(
        self, writing: Writing, namespace: str, name: str, stored: Stored | None, body: Json
    ) -> Written:
        kind = writing.asked
        config = from_view(
            kind, writing.kind, patching.check_config(writing, namespace, name, body)
        )
        if stored is None:
            return await self._apply_new(writing, namespace, name, config)
        old = self.decoded(stored)
        patching.check_versions(writing, old, config)
        config = self._pipeline.prune(writing, config)
        new = ownership.apply(writing, old, config)
        prepared = self._pipeline.prepare_update(writing, old, new)
        if is_same(old, prepared, managers=True):
            return Written(
                stored=view_stored(self._of(kind), stored), warnings=writing.warnings.texts
            )
        return await self._commit(writing, prepared, stored)

    async def _apply_new(
        self, writing: Writing, namespace: str, name: str, config: Object
    ) -> Written:
        """An apply that creates; never where the caller speaks of an object that it has seen."""
        if writing.subresource:
            raise refusals.not_found(writing.asked, name)
        for field in ("uid", "resourceVersion"):
            seen = dig(config, "metadata", field)
            if seen:
                cause = f"{field} mismatch: the request has {seen}, and there is no such object"
                raise refusals.conflict(writing.asked, name, cause)
        self._check_namespace(writing.kind, namespace, name)
        config = self._pipeline.prune(writing, config)
        new = ownership.apply(writing, None, config)
        obj = self._pipeline.prepare_create(writing, namespace, new)
        obj = ownership.with_managers(obj, ownership.managers_of(new))
        return await self._commit(writing, obj, None)

    async def _update(self, writing: Writing, stored: Stored, old: Object, new: Object) -> Written:
        new = self._pipeline.prepare_update(writing, old, new)
        if is_same(old, new, managers=False):
            seen = view_stored(self._of(writing.asked), stored)
            return Written(stored=seen, warnings=writing.warnings.texts)
        new = ownership.track(writing, old, new)
        return await self._commit(writing, new, stored)

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        delete: DeleteOptions,
        options: WriteOptions,
    ) -> Written:
        """DELETE; `Written.removed` says whether it went at once."""
        writing = self._begin(kind, options)
        namespace = namespace if kind.namespaced else ""
        async with self._locks.hold((writing.kind.resource, namespace, name)):
            stored = self._existing(writing, namespace, name)
            old = self.decoded(stored)
            check_preconditions(kind, old, delete)
            check_permanence(writing.kind, name)
            if writing.kind == kinds.CUSTOM_RESOURCE_DEFINITION:
                old = hold_for_instances(old)
            decision = plan_deletion(writing.kind, old, delete, writing.now)
            for warning in decision.warnings:
                writing.warnings.add(warning)
            if decision.obj is None:
                seen = view_stored(self._of(kind), stored)
                return Written(stored=seen, warnings=writing.warnings.texts)
            return await self._commit(writing, decision.obj, stored, remove=decision.remove)

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str,
        which: ListOptions,
        delete: DeleteOptions,
        options: WriteOptions,
    ) -> Sequence[Written]:
        """DELETE of a list path, object by object, honouring the selectors."""
        page = self.list(kind, namespace, which)
        deletions = (
            self.delete(kind, stored.namespace, stored.name, delete, options)
            for stored in page.items
        )
        outcomes = await asyncio.gather(*deletions, return_exceptions=True)
        written = []
        for outcome in outcomes:
            if isinstance(outcome, Written):
                written.append(outcome)
            elif not isinstance(outcome, NotFound):
                raise outcome
        return written

    async def bind_pod(
        self, namespace: str, name: str, binding: Object, options: WriteOptions
    ) -> Written:
        """POST pods/binding: set `spec.nodeName` once and the condition PodScheduled."""
        writing = self._begin(kinds.POD, options, "binding")
        async with self._locks.hold((kinds.POD.resource, namespace, name)):
            stored = self._existing(writing, namespace, name)
            old = self.decoded(stored)
            new = bind_to_node(old, binding, render_time(writing.now))
            return await self._commit(writing, ownership.track(writing, old, new), stored)

    # Steps of a write

    def _begin(self, kind: Kind, options: WriteOptions, subresource: str = "") -> Writing:
        served = self._of(kind)
        if served.storage is not None:
            served = self._of(served.storage)
        if subresource and subresource not in served.kind.subresources:
            raise NotFound("the server could not find the requested resource")
        ownership.check_manager(options.field_manager)
        return Writing(
            served=served,
            asked=kind,
            options=options,
            warnings=Warnings(),
            now=self._clock.now(),
            subresource=subresource,
        )

    def _quota_lock(self, kind: Kind, namespace: str) -> AbstractAsyncContextManager[None]:
        """Where a quota counts, one create at a time: the next one must see this one."""
        if not kind.namespaced or not self.count(kinds.RESOURCE_QUOTA, namespace):
            return nullcontext()
        return self._locks.hold(("quota", kind.resource, namespace))

    def _existing(self, writing: Writing, namespace: str, name: str) -> Stored:
        stored = self._find(writing.kind, namespace, name)
        if stored is None:
            raise refusals.not_found(writing.asked, name)
        return stored

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        stored = self._find(kinds.NAMESPACE, "", namespace)
        if stored is None:
            raise refusals.not_found(kinds.NAMESPACE, namespace)
        if is_deleting(self.decoded(stored)):
            raise refusals.terminating(kind, name, namespace)

    async def _commit(
        self, writing: Writing, obj: Object, before: Stored | None, *, remove: bool = False
    ) -> Written:
        kind, warnings = writing.kind, writing.warnings.texts
        if before is None and kind in kinds.STORED_WITHOUT_EFFECT:
            writing.warnings.add(f"{kind.plural} are stored, but nothing here acts on them")
        served = self._of(writing.asked)
        remove = remove or (before is not None and is_released(kind, obj))
        obj = {**obj, "metadata": {**obj["metadata"]}}
        size = len(msgspec.json.encode(obj))
        if size > MAX_OBJECT_BYTES and not remove:
            raise RequestTooLarge(
                f'{kind.resource} "{name_of(obj)}" has {size} bytes; the limit is '
                f"{MAX_OBJECT_BYTES}"
            )
        if writing.options.dry_run:
            stored = _dry(kind, obj, before)
            return Written(
                stored=view_stored(served, stored),
                created=before is None,
                removed=remove,
                warnings=warnings,
            )
        key = (kind.resource, obj["metadata"].get("namespace") or "", name_of(obj))
        self._submitted[key] = obj
        change = Change(
            kind=kind,
            obj=obj,
            before=before,
            remove=remove,
            durable=writing.subresource != "status" and kind not in _LOST_WITHOUT_HARM,
        )
        try:
            # A caller that goes away must not free the key while its change is still waiting.
            committed = await _settled(self._store.submit(change))
        finally:
            self._submitted.pop(key, None)
        return Written(
            stored=view_stored(served, committed.now),
            created=before is None,
            removed=remove,
            warnings=warnings,
        )

    # After a commit

    def _on_commit(self, change: Committed) -> None:
        now = change.now
        if change.before is not None:
            self._decoded.drop(change.before)
        obj = self._submitted.pop((now.kind.resource, now.namespace, now.name), None)
        if obj is not None and change.type is not WatchType.DELETED:
            self._decoded.put(now, obj)
        if now.kind.resource == _CRD_RESOURCE:
            self._on_crd(change)
        self._hub.publish(change)
        self._progress.set()
        for handler in self._handlers.get(now.kind.resource, ()):
            try:
                handler(change)
            except Exception:
                # A listener's fault must not keep the writer, or the next listener, waiting.
                log.exception("listener failed kind=%s name=%s", now.kind.resource, now.name)

    def _on_crd(self, change: Committed) -> None:
        if change.type is WatchType.DELETED:
            for served in self._served.remove(change.now.name):
                self._hub.close_resource(served.kind.resource)
        else:
            crd = self.decoded(change.now)
            self._served.put(crd)
            if is_deleting(crd):
                self._cleanup.start(crd)
        for callback in self._kinds_changed:
            callback()


def _dry(kind: Kind, obj: Object, before: Stored | None) -> Stored:
    """What a write would have stored; its resourceVersion is the one from before."""
    if before is not None:
        return build_stored(kind, obj, before.revision)
    obj["metadata"].pop("resourceVersion", None)
    return build_stored(kind, obj, 0, msgspec.json.encode(obj))


async def _settled(future: asyncio.Future[Committed]) -> Committed:
    """The outcome of a submitted change; a cancelled caller still waits for it."""
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if not future.done():
            await asyncio.wait([future])
        raise
