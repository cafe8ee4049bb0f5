"""Which kinds are served: the built-in table, and whatever CustomResourceDefinitions say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.api import kinds
from trainwright.api.kinds import Kind
from trainwright.base.objects import Object, dig, name_of
from trainwright.server.requests import ServedKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def build_served_builtins(schemas: Any) -> Sequence[ServedKind]:
    """The kinds that are served without a CRD; `schemas` gives the schema of a kind or None."""
    storage = {kinds.EVENT_V1: kinds.EVENT}
    return tuple(
        ServedKind(kind=kind, schema=schemas(kind), custom=False, storage=storage.get(kind))
        for kind in kinds.BUILTIN_KINDS
    )


def build_served_custom(crd: Object) -> Sequence[ServedKind]:
    """Every served version of a CRD; the storage version comes first."""
    spec = crd["spec"]
    versions = sorted(spec.get("versions") or (), key=lambda version: not version.get("storage"))
    if not versions:
        return ()
    stored = _kind_of(spec, versions[0])
    served = []
    for version in versions:
        if not version.get("served"):
            continue
        kind = _kind_of(spec, version)
        fields = version.get("selectableFields") or ()
        served.append(
            ServedKind(
                kind=kind,
                schema=dig(version, "schema", "openAPIV3Schema"),
                custom=True,
                selectable_fields=frozenset(str(f["jsonPath"]).lstrip(".") for f in fields),
                printer_columns=tuple(version.get("additionalPrinterColumns") or ()),
                storage=None if kind == stored else stored,
            )
        )
    return served


def _kind_of(spec: Object, version: Object) -> Kind:
    names = spec["names"]
    known = kinds.find_kind(f"{spec['group']}/{version['name']}", names["kind"])
    if known is not None and known.plural == names["plural"]:
        return known
    return Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        namespaced=spec.get("scope") != "Cluster",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(version.get("subresources") or ()) & {"status"},
    )


class ServedTable:
    """The kinds served now, found by their REST path or by the `Kind` itself."""

    def __init__(self, builtins: Iterable[ServedKind]) -> None:
        self._builtins = tuple(builtins)
        self._custom: dict[str, Sequence[ServedKind]] = {}
        self._by_kind: dict[Kind, ServedKind] = {}
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        self.stored: tuple[Kind, ...] = ()
        """The kinds that objects are kept as: of each, one version."""
        self._rebuild()

    def _rebuild(self) -> None:
        self.stored = tuple(served.kind for served in self.all() if served.storage is None)
        self._by_kind = {served.kind: served for served in self.all()}
        self._by_path = {
            (served.kind.group, served.kind.version, served.kind.plural): served
            for served in self.all()
        }

    def all(self) -> Sequence[ServedKind]:
        """Built-in kinds first."""
        custom = (served for versions in self._custom.values() for served in versions)
        return (*self._builtins, *custom)

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        """The kind behind a REST path."""
        return self._by_path.get((group, version, plural))

    def of(self, kind: Kind) -> ServedKind | None:
        """How a kind is served, None when it is not."""
        return self._by_kind.get(kind)

    def put(self, crd: Object) -> None:
        """Serve what the CRD says now."""
        self._custom[name_of(crd)] = build_served_custom(crd)
        self._rebuild()

    def remove(self, crd_name: str) -> Sequence[ServedKind]:
        """Serve the CRD's kinds no more; returns them."""
        gone = self._custom.pop(crd_name, ())
        self._rebuild()
        return gone
