"""From what a client sent to what is stored: system metadata, schema, defaults, rules, admission.

Synchronous and without side effects, so that nothing committed can change between its checks and
the commit's submission.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainwright.api import kinds
from trainwright.base.errors import BadRequest, FieldError
from trainwright.base.objects import Object, dig, name_of
from trainwright.base.times import render_time
from trainwright.core.admission import Request
from trainwright.core.builtin.metadata import find_metadata_errors
from trainwright.schema.defaulting import apply_defaults
from trainwright.schema.pruning import prune
from trainwright.schema.verdict import find_errors
from trainwright.server import ownership, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from trainwright.api.kinds import Kind
    from trainwright.base.errors import ApiError
    from trainwright.core.admission import Admission, Lookup
    from trainwright.server.namespace_limits import NamespaceLimits
    from trainwright.server.requests import ServedKind, Warnings, WriteOptions

_KEEPS_STATUS_ON_CREATE = (kinds.NODE,)
_FIRST_STATUS: Mapping[Kind, Object] = {
    kinds.POD: {"phase": "Pending"},
    kinds.PERSISTENT_VOLUME_CLAIM: {"phase": "Pending"},
}
_SYSTEM_FIELDS = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)

_WRONG_SHAPE = (AttributeError, KeyError, TypeError, ValueError)
"""What defaults raise over fields of another type than they expect; the schema words it better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """One write on its way through the pipeline."""

    served: ServedKind
    """The kind that is stored."""
    asked: Kind
    """The kind that the request names; another view of the same object at times."""
    options: WriteOptions
    warnings: Warnings
    now: datetime
    subresource: str = ""

    @property
    def kind(self) -> Kind:
        """The kind that is written."""
        return self.served.kind


class Pipeline:
    """The steps of every write; `lookup` reads committed objects."""

    def __init__(
        self, admission: Mapping[Kind, Admission], lookup: Lookup, limits: NamespaceLimits
    ) -> None:
        self._admission = admission
        self._lookup = lookup
        self._limits = limits
        self._status_schemas = _StatusSchemas()

    def prepare_create(self, writing: Writing, namespace: str, obj: Object) -> Object:
        """The object to store; `metadata.name` is set already.

        Raises:
            ApiError: BadRequest, Invalid or Forbidden.
        """
        kind = writing.kind
        metadata = dict(obj["metadata"])
        if metadata.pop("resourceVersion", ""):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        for field in (*_SYSTEM_FIELDS, "selfLink", "managedFields"):
            metadata.pop(field, None)
        if kind.namespaced:
            metadata["namespace"] = namespace
        metadata["uid"] = uid = _new_uid()  # a Job's defaults select its pods by it
        new = _ordered({**obj, "metadata": metadata})
        if "status" in kind.subresources and kind not in _KEEPS_STATUS_ON_CREATE:
            new.pop("status", None)
        new = self._fill_in_limits(writing, namespace, new)
        new = self.admit(writing, new, None)
        self._limits.check(kind, namespace, new)
        if kind in _FIRST_STATUS and not new.get("status"):
            new["status"] = dict(_FIRST_STATUS[kind])
        metadata = dict(new["metadata"])
        metadata["uid"] = uid
        metadata["creationTimestamp"] = render_time(writing.now)
        if kind.has_generation:
            metadata["generation"] = 1
        return {**new, "metadata": metadata}

    def prepare_update(self, writing: Writing, old: Object, new: Object) -> Object:
        """The object to store instead of `old`; managedFields are those of `new`.

        Raises:
            ApiError: BadRequest, Invalid or Forbidden.
        """
        merged = _ordered(_keep_parts(writing, old, new))
        merged = self.admit(writing, merged, old)
        metadata = dict(merged["metadata"])
        if writing.kind.has_generation and _spec_of(merged) != _spec_of(old):
            metadata["generation"] = dig(old, "metadata", "generation", default=0) + 1
        return {**merged, "metadata": metadata}

    def admit(self, writing: Writing, new: Object, old: Object | None) -> Object:
        """Prune, default and check; the result is what may be stored.

        Raises:
            Invalid: by the schema, its CEL rules, or built-in rules. Forbidden: by most webhooks.
            BadRequest: unknown or duplicate fields under Strict.
        """
        kind = writing.kind
        rules = self._admission.get(kind)
        if rules and rules.webhook_name and writing.subresource:
            rules = None
        schema = writing.served.schema
        if writing.subresource == "status" and schema is not None:
            new = self._trim_status(writing, schema, new)
        else:
            new = self.prune(writing, new)
            new = new if schema is None else apply_defaults(schema, new)
        request = Request(
            kind=kind,
            new=new,
            old=old,
            lookup=self._lookup,
            now=writing.now,
            subresource=writing.subresource,
            warn=writing.warnings.add,
        )
        if rules and rules.default and not writing.subresource:
            defaulted = self._default(writing, rules.default, request)
            if schema is not None and defaulted is not new:
                defaulted = apply_defaults(schema, prune(schema, defaulted)[0])
            new = defaulted
            request = replace(request, new=new)
        self._check_schema(writing, new, old)
        if rules and rules.validate:
            verdict = rules.validate(request)
            for warning in verdict.warnings:
                writing.warnings.add(warning)
            if verdict.errors:
                raise _refuse(rules, kind, name_of(new), verdict.errors)
        return new

    def _fill_in_limits(self, writing: Writing, namespace: str, new: Object) -> Object:
        try:
            return self._limits.fill_in(writing.kind, namespace, new)
        except _WRONG_SHAPE:
            self._check_schema(writing, new, None)
            raise

    def _default(
        self, writing: Writing, default: Callable[[Request], Object], request: Request
    ) -> Object:
        """Built-in defaults; what has another shape than they expect is refused by its schema."""
        try:
            return default(request)
        except _WRONG_SHAPE:
            self._check_schema(writing, request.new, request.old)
            raise

    def _trim_status(self, writing: Writing, schema: dict[str, Any], new: Object) -> Object:
        """Prune and default the status alone: nothing else of the object has changed."""
        if "status" not in new:
            return new
        part = self.prune(writing, {"status": new["status"]}, self._status_schemas.of(schema))
        return {**new, **apply_defaults(self._status_schemas.of(schema), part)}

    def prune(self, writing: Writing, obj: Object, schema: dict[str, Any] | None = None) -> Object:
        """Drop fields that the schema does not know, as loudly as the request wants it.

        Raises:
            BadRequest: there are such fields (or duplicate ones), and the request is Strict.
        """
        findings = list(writing.options.decode_findings)
        schema = writing.served.schema if schema is None else schema
        if schema is not None:
            obj, dropped = prune(schema, obj)
            findings += (f'unknown field "{path}"' for path in dropped)
        if not findings or writing.options.field_validation == "Ignore":
            return obj
        if writing.options.field_validation == "Strict":
            kind = writing.kind
            raise BadRequest(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                f"strict decoding error: {', '.join(findings)}"
            )
        for finding in findings:
            writing.warnings.add(finding)
        return obj

    def _check_schema(self, writing: Writing, new: Object, old: Object | None) -> None:
        schema, subject, before = writing.served.schema, new, old
        errors: list[FieldError] = []
        if writing.subresource != "status":
            errors += find_metadata_errors(writing.kind, new, old, custom=writing.served.custom)
        if schema is not None:
            if writing.subresource == "status" and not schema.get("x-kubernetes-validations"):
                schema = self._status_schemas.of(schema)
                subject = {"status": new.get("status") or {}}
                before = {"status": dig(old, "status", default={})} if old else None
            errors += find_errors(schema, subject, before)
        if errors:
            raise refusals.invalid(writing.kind, name_of(new), errors)


def _refuse(rules: Admission, kind: Kind, name: str, errors: Sequence[FieldError]) -> ApiError:
    """The refusal as whoever runs these rules on a real cluster words it."""
    if not rules.webhook_name:
        return refusals.invalid(kind, name, errors)
    if rules.webhook_says_invalid:
        return refusals.denied_as_invalid(rules.webhook_name, kind, name, errors)
    return refusals.denied(rules.webhook_name, errors)


def _new_uid() -> str:
    """A version 4 UUID; it need not be secret, so it costs no system call."""
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


class _StatusSchemas:
    """The part of a schema that a status write is held against, made once for each schema."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}

    def of(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of `{"status": ...}` alone."""
        whole, part = self._made.get(id(schema), (None, {}))
        if whole is not schema:
            status = dig(schema, "properties", "status", default={"type": "object"})
            part = {"type": "object", "properties": {"status": status}}
            self._made[id(schema)] = (schema, part)
        return part


def _ordered(obj: Object) -> Object:
    """apiVersion, kind, metadata first; a stable form for files and diffs."""
    first = {key: obj[key] for key in ("apiVersion", "kind", "metadata")}
    return {**first, **{key: value for key, value in obj.items() if key not in first}}


def _spec_of(obj: Object) -> Object:
    """What the generation counts the changes of."""
    left_out = ("apiVersion", "kind", "metadata", "status")
    return {key: value for key, value in obj.items() if key not in left_out}


def _keep_parts(writing: Writing, old: Object, new: Object) -> Object:
    """`new`, with everything from `old` that this write may not touch."""
    kind, subresource = writing.kind, writing.subresource
    if subresource == "status":
        return _with_status(writing, old, new)
    if subresource == "finalize":
        finalizers = dig(new, "spec", "finalizers", default=[])
        return {**old, "spec": {**(old.get("spec") or {}), "finalizers": finalizers}}
    if subresource == "binding":
        return _with_node(old, new)
    kept = {**new, "metadata": _kept_metadata(old, dict(new["metadata"]))}
    if "status" in kind.subresources:
        kept.pop("status", None)
        if "status" in old:
            kept["status"] = old["status"]
    return kept


def _with_node(old: Object, new: Object) -> Object:
    """What the embedded scheduler's patch of `binding` may write: the node, and the conditions."""
    spec = {**old["spec"], "nodeName": dig(new, "spec", "nodeName")}
    conditions = dig(new, "status", "conditions", default=[])
    status = {**(old.get("status") or {}), "conditions": conditions}
    return {**old, "spec": spec, "status": status}


def _with_status(writing: Writing, old: Object, new: Object) -> Object:
    kept = {**old}
    kept.pop("status", None)
    if new.get("status") is not None:
        kept["status"] = new["status"]
    metadata = dict(old["metadata"])
    if not writing.served.custom:
        for field in ("labels", "annotations"):
            metadata.pop(field, None)
            if new["metadata"].get(field):
                metadata[field] = new["metadata"][field]
    metadata["managedFields"] = new["metadata"].get("managedFields", [])
    return {**kept, "metadata": metadata}


def _kept_metadata(old: Object, metadata: Object) -> Object:
    before = old["metadata"]
    for field in (*_SYSTEM_FIELDS, "namespace", "generateName"):
        metadata.pop(field, None)
        if field in before:
            metadata[field] = before[field]
    metadata.pop("selfLink", None)
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if field in metadata and not metadata[field]:
            del metadata[field]
    return metadata


def is_same(old: Object, new: Object, *, managers: bool) -> bool:
    """Whether storing `new` over `old` would change nothing worth a resourceVersion."""
    return _compared(old, managers=managers) == _compared(new, managers=managers)


def _compared(obj: Object, *, managers: bool) -> Object:
    ignored = ("resourceVersion",) if managers else ("resourceVersion", "managedFields")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ignored}
    if managers and "managedFields" in metadata:
        metadata["managedFields"] = ownership.without_times(metadata["managedFields"])
    return {**obj, "metadata": metadata}
