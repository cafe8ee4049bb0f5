"""From a changed object to the keys of its owners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.objects import controller_of, namespace_of
from trainwright.machinery.workqueue import Key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.controllers.reconciler import Mapper
    from trainwright.machinery.api import WatchType


def controlling(kind: Kind) -> Mapper:
    """A mapper to the object of `kind` that controls the changed one, before or now."""

    def find(_type: WatchType, old: Object | None, new: Object) -> Iterable[Key]:
        keys = set()
        for obj in (old, new):
            owner = controller_of(obj) if obj is not None else None
            if owner is not None and owner.get("kind") == kind.kind:
                keys.add(Key(namespace_of(new), str(owner.get("name"))))
        return keys

    return find
