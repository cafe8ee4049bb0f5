"""The namespace controller of the embedded plane: fills new namespaces and empties old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT
from trainwright.base.objects import is_deleting, name_of, namespace_of
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.lifecycle.namespaces import (
    DEFAULT_SERVICE_ACCOUNT,
    ROOT_CA_CONFIG_MAP,
    ObservedNamespace,
    plan_namespace,
)
from trainwright.machinery.api import WatchType
from trainwright.machinery.workqueue import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.machinery.api import Lister


class NamespaceController:
    """Reconciles namespaces."""

    name = "namespace-controller"
    manager = "kube-controller-manager"

    def __init__(
        self, *, lister: Lister, kinds: Callable[[], Sequence[Kind]], root_ca: str
    ) -> None:
        """Empty namespaces of all `kinds` that there are; pods trust the API by the PEM `root_ca`."""
        self._lister = lister
        self._kinds = kinds
        self._root_ca = root_ca

    def watches(self) -> Sequence[Watch]:
        """Namespaces; what is in them while they go; what they must have."""
        return (
            Watch(NAMESPACE),
            *(Watch(kind, self._content_changed) for kind in self._content_kinds()),
        )

    async def reconcile(self, key: Key) -> Outcome | None:
        """Observe one namespace and plan."""
        namespace = self._lister.get(NAMESPACE, "", key.name)
        if namespace is None:
            return None
        return Outcome(namespace, plan_namespace(self._observe(namespace), self._root_ca))

    def _observe(self, namespace: Object) -> ObservedNamespace:
        name = name_of(namespace)
        if is_deleting(namespace):
            content = [
                (kind, obj)
                for kind in self._content_kinds()
                for obj in self._lister.list(kind, name)
            ]
            return ObservedNamespace(namespace=namespace, content=content)
        return ObservedNamespace(
            namespace=namespace,
            has_service_account=self._has(SERVICE_ACCOUNT, name, DEFAULT_SERVICE_ACCOUNT),
            has_root_ca=self._has(CONFIG_MAP, name, ROOT_CA_CONFIG_MAP),
        )

    def _content_kinds(self) -> Iterable[Kind]:
        return (kind for kind in self._kinds() if kind.namespaced)

    def _has(self, kind: Kind, namespace: str, name: str) -> bool:
        return self._lister.get(kind, namespace, name) is not None

    def _content_changed(self, change: WatchType, old: Object | None, new: Object) -> Iterable[Key]:
        """Only what goes while its namespace goes, and what every namespace must have."""
        name = namespace_of(new)
        if name_of(new) in (DEFAULT_SERVICE_ACCOUNT, ROOT_CA_CONFIG_MAP):
            wanted = change is WatchType.DELETED
        else:
            wanted = False
        namespace = self._lister.get(NAMESPACE, "", name)
        leaving = namespace is not None and is_deleting(namespace)
        added = change is WatchType.ADDED and old is None
        if wanted or (leaving and (added or change is WatchType.DELETED)):
            yield Key("", name)
