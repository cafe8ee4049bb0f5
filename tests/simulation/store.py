"""A toy API server: objects in a dict, every change in a log, the real rules of deletion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import JOB, JOBSET, POD, TRAINJOB, Kind
from trainwright.base.errors import AlreadyExists, Conflict, NotFound
from trainwright.base.objects import dig, name_of, namespace_of, resource_version_of, uid_of
from trainwright.base.times import render_time
from trainwright.core.admission import Request, build_admission
from trainwright.machinery.api import DeleteOptions, PatchType, WatchType
from trainwright.merge.merge_patch import apply_merge_patch
from trainwright.server.deletion import check_preconditions, is_released, plan_deletion

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from trainwright.base.objects import Object

Place = tuple[str, str]
_ADMISSION = {kind: build_admission()[kind] for kind in (JOB, JOBSET, TRAINJOB)}


@dataclass(slots=True)
class Table:
    """The objects of one kind, and all that ever happened to them."""

    objects: dict[Place, Object] = field(default_factory=dict)
    log: list[tuple[WatchType, Object]] = field(default_factory=list)


class ToyStore:
    """The part of `machinery.api.Api` that the controllers use; every call returns at once."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._count = 0
        self.tables: dict[Kind, Table] = {}

    def table(self, kind: Kind) -> Table:
        return self.tables.setdefault(kind, Table())

    def all(self, kind: Kind) -> list[Object]:
        return list(self.table(kind).objects.values())

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        return self.table(kind).objects.get((namespace, name))

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        found = self.find(kind, namespace, name)
        if found is None:
            raise NotFound(f"{kind.plural} {name}")
        return found

    async def create(self, kind: Kind, obj: Object, *, field_manager: str = "") -> Object:
        if self.find(kind, namespace_of(obj), name_of(obj)) is not None:
            raise AlreadyExists(f"{kind.plural} {name_of(obj)}")
        self._count += 1
        metadata = obj["metadata"] | {
            "uid": f"{kind.kind}-{self._count}",
            "creationTimestamp": render_time(self._now()),
        }
        new = {**obj, "metadata": metadata}
        new = self._default(kind, new)
        return self._write(kind, WatchType.ADDED, new)

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Any,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        if type is PatchType.APPLY:
            return await self._apply(kind, namespace, name, body)
        old = await self.get(kind, namespace, name)
        version = dig(body, "metadata", "resourceVersion")
        if version and version != resource_version_of(old):
            raise Conflict(f"{kind.plural} {name} has changed")
        new = apply_merge_patch(old, body)
        if subresource == "status":
            new = {**old, "status": new.get("status") or {}}
        elif not subresource and "status" in old:
            new = {**new, "status": old["status"]}
        if new == old:
            return old
        if is_released(kind, new):
            return self._write(kind, WatchType.DELETED, new)
        return self._write(kind, WatchType.MODIFIED, new)

    async def _apply(self, kind: Kind, namespace: str, name: str, body: Object) -> Object:
        """Near enough to server-side apply for one manager that always sends everything."""
        old, uid = self.find(kind, namespace, name), dig(body, "metadata", "uid")
        if uid is not None and uid != (uid_of(old) if old else None):
            raise Conflict(f"{kind.plural} {name} is another one by now")
        if old is None:
            return await self.create(kind, body)
        new = self._default(kind, apply_merge_patch(old, body))
        return old if new == old else self._write(kind, WatchType.MODIFIED, new)

    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> Object:
        old = await self.get(kind, namespace, name)
        check_preconditions(kind, old, options)
        deletion = plan_deletion(kind, old, options, self._now())
        if deletion.obj is None:
            return old
        if deletion.remove or is_released(kind, deletion.obj):
            return self._write(kind, WatchType.DELETED, deletion.obj)
        return self._write(kind, WatchType.MODIFIED, deletion.obj)

    def _default(self, kind: Kind, new: Object) -> Object:
        rules = _ADMISSION.get(kind)
        if rules is None or rules.default is None:
            return new
        return rules.default(
            Request(kind=kind, new=new, old=None, lookup=self.find, now=self._now())
        )

    def _write(self, kind: Kind, change: WatchType, obj: Object) -> Object:
        self._count += 1
        new = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._count)}}
        table, place = self.table(kind), (namespace_of(new), name_of(new))
        if change is WatchType.DELETED:
            del table.objects[place]
        else:
            table.objects[place] = new
        table.log.append((change, new))
        if kind == POD:
            self._check_pods_are_single(new)
        return new

    def _check_pods_are_single(self, new: Object) -> None:
        """No two live pods of one index of one Job, ever."""
        if not is_live(new):
            return
        for other in self.all(POD):
            if is_live(other) and uid_of(other) != uid_of(new) and slot_of(other) == slot_of(new):
                raise AssertionError(f"{name_of(new)} doubles {name_of(other)}")


def is_live(pod: Object) -> bool:
    """Running or about to, and not on its way out."""
    ended = dig(pod, "status", "phase") in ("Succeeded", "Failed")
    return not ended and not dig(pod, "metadata", "deletionTimestamp")


def slot_of(pod: Object) -> tuple[str, str]:
    """Job uid and completion index; pods without an index are all different."""
    owner = dig(pod, "metadata", "ownerReferences", 0, "uid", default="")
    key = "batch.kubernetes.io/job-completion-index"
    return owner, dig(pod, "metadata", "labels", key, default=name_of(pod))
