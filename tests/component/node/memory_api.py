"""A very small API server in memory: enough for one node, with resourceVersions and finalizers."""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import EVENT_V1, POD, Kind
from trainwright.base.errors import AlreadyExists, Conflict, NotFound
from trainwright.base.objects import Json, Object, dig, name_of, namespace_of, uid_of
from trainwright.machinery.api import (
    DeleteOptions,
    Handler,
    ListPage,
    PatchType,
    WatchEvent,
    WatchType,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

Key = tuple[str, str, str]


def merge(target: Json, patch: Json) -> Json:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


class MemoryApi:
    """Implements `Api` and `Lister`."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.events: list[Object] = []
        self.writes = 0
        self.phases: list[str] = []
        self._versions = itertools.count(1)
        self._handlers: list[tuple[str, Handler]] = []

    def _key(self, kind: Kind, namespace: str, name: str) -> Key:
        return (kind.kind, namespace, name)

    def _tell(self, kind: Kind, type: WatchType, before: Object | None, obj: Object) -> None:
        for wanted, handler in list(self._handlers):
            if wanted == kind.kind:
                handler(type, before, obj)

    def _put(self, kind: Kind, obj: Object) -> Object:
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(next(self._versions))
        obj["metadata"].setdefault("uid", f"uid-{next(self._versions)}")
        key = self._key(kind, namespace_of(obj), name_of(obj))
        before = self.objects.get(key)
        self.objects[key] = obj
        self.writes += 1
        self._tell(kind, WatchType.MODIFIED if before else WatchType.ADDED, before, obj)
        return obj

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        try:
            return self.objects[self._key(kind, namespace, name)]
        except KeyError:
            raise NotFound(f"{kind.plural} {name} not found") from None

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
        items = [obj for key, obj in self.objects.items() if key[0] == kind.kind]
        return ListPage(items, "1")

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
        for _ in ():
            yield _
        raise NotImplementedError

    async def create(
        self, kind: Kind, obj: Object, *, field_manager: str, dry_run: bool = False
    ) -> Object:
        if kind is EVENT_V1:
            self.events.append(obj)
            return obj
        if self._key(kind, namespace_of(obj), name_of(obj)) in self.objects:
            raise AlreadyExists(f"{kind.plural} {name_of(obj)} already exists")
        return self._put(kind, obj)

    async def replace(
        self, kind: Kind, obj: Object, *, subresource: str = "", field_manager: str
    ) -> Object:
        return self._put(kind, obj)

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
        if kind is EVENT_V1:
            return {}
        live = await self.get(kind, namespace, name)
        version = dig(body, "metadata", "resourceVersion")
        if version and version != live["metadata"]["resourceVersion"]:
            raise Conflict(f"{name} changed")
        if kind is POD and dig(body, "status", "phase"):
            self.phases.append(body["status"]["phase"])
        return self._put(kind, merge(live, body))

    async def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> Object:
        live = await self.get(kind, namespace, name)
        if options and options.uid and options.uid != uid_of(live):
            raise Conflict("another uid")
        grace = options.grace_period_s if options else None
        if (
            kind is POD
            and grace != 0
            and dig(live, "status", "phase") not in ("Succeeded", "Failed")
        ):
            grace = grace or dig(live, "spec", "terminationGracePeriodSeconds", default=30)
            deadline = "2999-01-01T00:00:00Z" if grace > 60 else self.deadline(grace)
            meta = {"deletionTimestamp": deadline, "deletionGracePeriodSeconds": grace}
            return self._put(kind, merge(live, {"metadata": meta}))
        del self.objects[self._key(kind, namespace, name)]
        self._tell(kind, WatchType.DELETED, live, live)
        return live

    def deadline(self, grace_s: float) -> str:
        from datetime import UTC, datetime, timedelta

        from trainwright.base.times import render_micro_time

        return render_micro_time(datetime.now(UTC) + timedelta(seconds=grace_s))

    def subscribe(self, kind: Kind, handler: Handler) -> None:
        self._handlers.append((kind.kind, handler))
        for key, obj in list(self.objects.items()):
            if key[0] == kind.kind:
                handler(WatchType.ADDED, None, obj)


class MemoryLister:
    """The cached side of a `MemoryApi`."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        return self._api.objects.get((kind.kind, namespace, name))

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        owner_uid: str = "",
    ) -> Sequence[Object]:
        return [obj for key, obj in self._api.objects.items() if key[0] == kind.kind]

    def subscribe(self, kind: Kind, handler: Handler) -> None:
        self._api.subscribe(kind, handler)


def make_container(script: str, name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "x", "command": ["sh", "-c", script], **more}


def make_pod(*containers: Object, name: str = "pod", **spec: Any) -> Object:
    metadata = spec.pop("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {
            "nodeName": "laptop",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "containers": list(containers),
            **spec,
        },
        "status": {"phase": "Pending"},
    }
