"""The garbage collector of the embedded plane: driven by changes, asks live before it deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import EVENT
from trainwright.api.wellknown import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from trainwright.base.errors import NotFound
from trainwright.base.objects import is_deleting, name_of, namespace_of, uid_of
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.lifecycle.collection import (
    Dependent,
    ObservedObject,
    OwnerState,
    finalizers_of,
    find_owner_state,
    owner_references_of,
    plan_collection,
)
from trainwright.machinery.api import WatchType
from trainwright.machinery.workqueue import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.controllers.reconciler import Mapper
    from trainwright.machinery.api import Api, Lister


def key_of(kind: Kind, namespace: str, name: str) -> Key:
    """The key of an object of any kind: its name carries the resource."""
    return Key(namespace if kind.namespaced else "", f"{kind.resource}/{name}")


class GarbageController:
    """Reconciles objects of every kind that own something or are owned."""

    name = "garbage-collector"
    manager = "kube-controller-manager"

    def __init__(self, *, api: Api, lister: Lister, kinds: Callable[[], Sequence[Kind]]) -> None:
        """`kinds` are those that there are now, users' own among them."""
        self._api = api
        self._lister = lister
        self._kinds = kinds

    def watches(self) -> Sequence[Watch]:
        """Every kind but events: they have no owners, and there are many."""
        return tuple(Watch(kind, self._mapper(kind)) for kind in self._kinds() if kind != EVENT)

    async def reconcile(self, key: Key) -> Outcome | None:
        """Look at one object, its owners and dependents, and plan."""
        resource, _, name = key.name.partition("/")
        kind = next((kind for kind in self._kinds() if kind.resource == resource), None)
        obj = self._lister.get(kind, key.namespace, name) if kind else None
        if kind is None or obj is None:
            return None
        owners = [await self._find_state(obj, ref) for ref in owner_references_of(obj)]
        needs_dependents = OwnerState.WAITING in owners or _waits(obj)
        dependents = tuple(self._dependents(obj)) if needs_dependents else ()
        observed = ObservedObject(kind=kind, obj=obj, owners=owners, dependents=dependents)
        return Outcome(obj, plan_collection(observed))

    async def _find_state(self, obj: Object, reference: Mapping[str, Any]) -> OwnerState:
        """A lister that lags may not show an owner yet: absence is what the server says."""
        kind = self._kind_of(reference)
        if kind is None:
            return OwnerState.PRESENT
        namespace, name = namespace_of(obj) if kind.namespaced else "", str(reference.get("name"))
        uid = str(reference.get("uid"))
        state = find_owner_state(self._lister.get(kind, namespace, name), uid)
        if state is not OwnerState.ABSENT:
            return state
        try:
            return find_owner_state(await self._api.get(kind, namespace, name), uid)
        except NotFound:
            return OwnerState.ABSENT

    def _kind_of(self, reference: Mapping[str, Any]) -> Kind | None:
        """The kind that a reference names in any of its versions."""
        group = str(reference.get("apiVersion")).rpartition("/")[0]
        named = (group, reference.get("kind"))
        return next((kind for kind in self._kinds() if (kind.group, kind.kind) == named), None)

    def _dependents(self, owner: Object) -> Iterator[Dependent]:
        for kind in self._kinds():
            for obj in self._lister.list(kind, namespace_of(owner), owner_uid=uid_of(owner)):
                yield Dependent(kind=kind, obj=obj)

    def _mapper(self, kind: Kind) -> Mapper:
        def find(change: WatchType, old: Object | None, new: Object) -> Iterable[Key]:
            return set(self._find_keys(kind, change, old, new))

        return find

    def _find_keys(
        self, kind: Kind, change: WatchType, old: Object | None, new: Object
    ) -> Iterator[Key]:
        references = owner_references_of(new)
        before = owner_references_of(old) if old is not None else ()
        if change is WatchType.DELETED:
            yield from self._owner_keys(new, references)
            yield from self._dependent_keys(new)
            return
        if references and (old is None or before != references):
            yield key_of(kind, namespace_of(new), name_of(new))
        if before != references:
            yield from self._owner_keys(new, before)
        if _waits(new):
            yield key_of(kind, namespace_of(new), name_of(new))
            if old is None or not _waits(old):
                yield from self._dependent_keys(new)

    def _owner_keys(self, obj: Object, references: Sequence[Mapping[str, Any]]) -> Iterator[Key]:
        for reference in references:
            kind = self._kind_of(reference)
            if kind is not None:
                yield key_of(kind, namespace_of(obj), str(reference.get("name")))

    def _dependent_keys(self, owner: Object) -> Iterator[Key]:
        for dependent in self._dependents(owner):
            obj = dependent.obj
            yield key_of(dependent.kind, namespace_of(obj), name_of(obj))


def _waits(obj: Object) -> bool:
    """Whether the object is being deleted and garbage collection has to see to its dependents."""
    finalizers = finalizers_of(obj)
    return is_deleting(obj) and (
        FOREGROUND_FINALIZER in finalizers or ORPHAN_FINALIZER in finalizers
    )
