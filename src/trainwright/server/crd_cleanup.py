"""A deleted CRD stays, by a finalizer, until every object of its kind is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.base.objects import Object, dig, is_deleting, name_of, uid_of
from trainwright.machinery.api import DeleteOptions, PatchType
from trainwright.server.deletion import CRD_CLEANUP_FINALIZER
from trainwright.server.requests import OWN_OPTIONS, ListOptions

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind
    from trainwright.server.registry import Registry


def hold_for_instances(crd: Object) -> Object:
    """The CRD with the finalizer that keeps it while there are objects of its kind."""
    finalizers = dig(crd, "metadata", "finalizers", default=[])
    if is_deleting(crd) or CRD_CLEANUP_FINALIZER in finalizers:
        return crd
    held = [*finalizers, CRD_CLEANUP_FINALIZER]
    return {**crd, "metadata": {**crd["metadata"], "finalizers": held}}


class CrdCleanup:
    """Deletes the objects of deleted CRDs, one task for each."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tasks: set[asyncio.Task[None]] = set()

    def resume(self) -> None:
        """Go on where the last process ended."""
        for stored in self._registry.candidates(kinds.CUSTOM_RESOURCE_DEFINITION):
            crd = self._registry.decoded(stored)
            if is_deleting(crd):
                self.start(crd)

    def start(self, crd: Object) -> None:
        """Delete the objects of a CRD that is being deleted, then let it go."""
        task = asyncio.create_task(self._run(crd), name=f"cleanup {name_of(crd)}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """End all work; the next `resume` takes it up."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _run(self, crd: Object) -> None:
        if CRD_CLEANUP_FINALIZER not in dig(crd, "metadata", "finalizers", default=[]):
            return
        registry, crds = self._registry, kinds.CUSTOM_RESOURCE_DEFINITION
        # The name of a CRD is its kind's resource.
        kind = next((k for k in registry.stored_kinds() if k.resource == name_of(crd)), None)
        if kind is not None:
            await self._remove_instances(kind)
        there = registry.lookup(crds, "", name_of(crd))
        if there is None or uid_of(there) != uid_of(crd):
            return
        finalizers = [f for f in crd["metadata"]["finalizers"] if f != CRD_CLEANUP_FINALIZER]
        patch = {"metadata": {"finalizers": finalizers}}
        await registry.patch(crds, "", name_of(crd), patch, OWN_OPTIONS, type=PatchType.MERGE)

    async def _remove_instances(self, kind: Kind) -> None:
        registry = self._registry
        while registry.count(kind):
            await registry.delete_collection(kind, "", ListOptions(), DeleteOptions(), OWN_OPTIONS)
            if registry.count(kind):
                await registry.wait_for_commit()
