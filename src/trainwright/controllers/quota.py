"""The quota controller of the embedded plane: keeps what is used of each ResourceQuota in its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import RESOURCE_QUOTA
from trainwright.base.objects import name_of, namespace_of
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.quota.plan import is_counted, plan_quota
from trainwright.core.quota.quotas import count_usage
from trainwright.machinery.api import WatchType
from trainwright.machinery.workqueue import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.controllers.reconciler import Mapper
    from trainwright.machinery.api import Lister


class QuotaController:
    """Reconciles ResourceQuotas. Admission counts for itself: this is what users read."""

    name = "resourcequota-controller"
    manager = "kube-controller-manager"

    def __init__(self, *, lister: Lister, kinds: Callable[[], Sequence[Kind]]) -> None:
        """`kinds` are those that there are now, users' own among them."""
        self._lister = lister
        self._kinds = kinds

    def watches(self) -> Sequence[Watch]:
        """Quotas, and everything that they may count."""
        counted = (kind for kind in self._kinds() if kind.namespaced and kind != RESOURCE_QUOTA)
        return (
            Watch(RESOURCE_QUOTA),
            *(Watch(kind, self._map_content(kind)) for kind in counted),
        )

    async def reconcile(self, key: Key) -> Outcome | None:
        """Count one quota's namespace."""
        quota = self._lister.get(RESOURCE_QUOTA, key.namespace, key.name)
        if quota is None:
            return None
        content = (
            (kind, obj)
            for kind in self._kinds()
            if kind.namespaced and is_counted(quota, kind)
            for obj in self._lister.list(kind, key.namespace)
        )
        return Outcome(quota, plan_quota(quota, content))

    def _map_content(self, kind: Kind) -> Mapper:
        def changed(change: WatchType, old: Object | None, new: Object) -> Iterable[Key]:
            quotas = self._lister.list(RESOURCE_QUOTA, namespace_of(new))
            if not quotas:
                return []
            same = old is not None and count_usage(kind, old) == count_usage(kind, new)
            if same and change is not WatchType.DELETED:
                return []
            return [Key(namespace_of(quota), name_of(quota)) for quota in quotas]

        return changed
