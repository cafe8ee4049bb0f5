"""CustomResourceDefinitions: names, schemas that can be served, and rules that compile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig
from trainwright.base.times import render_time
from trainwright.core import names
from trainwright.core.admission import Verdict
from trainwright.schema.patterns import compile_pattern
from trainwright.schema.rules import find_rule_compile_errors
from trainwright.schema.validation import find_schema_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainwright.base.objects import Object, ObjectView
    from trainwright.core.admission import Request

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "map", "set")


def default_definition(request: Request) -> Object:
    """A CRD with its derived names, conversion strategy, and the status of an accepted one."""
    spec = dict(request.new.get("spec") or {})
    wanted = dict(spec.get("names") or {})
    kind = str(wanted.get("kind", ""))
    wanted.setdefault("listKind", f"{kind}List")
    wanted.setdefault("singular", kind.lower())
    spec["names"] = wanted
    spec.setdefault("conversion", {"strategy": "None"})
    new = {**request.new, "spec": spec}
    if not request.subresource:
        new["status"] = _build_status(request, spec)
    return new


def _build_status(request: Request, spec: ObjectView) -> Object:
    status = dict(dig(request.old or request.new, "status", default={}))
    storage = [v.get("name") for v in spec.get("versions") or () if v.get("storage")]
    stored = status.get("storedVersions") or []
    status["storedVersions"] = [*stored, *(name for name in storage if name not in stored)]
    status["acceptedNames"] = spec["names"]
    if not status.get("conditions"):
        status["conditions"] = [
            {
                "type": name,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": render_time(request.now),
            }
            for name, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ]
    return status


def validate_definition(request: Request) -> Verdict:
    """Everything that keeps a CRD from being served."""
    if request.subresource:
        return Verdict()
    spec = request.new.get("spec") or {}
    errors = [
        *_find_name_errors(request.new, spec),
        *_find_version_errors(spec),
        *_find_change_errors(spec, dig(request.old or {}, "spec", default={})),
    ]
    return Verdict(errors=errors)


def _find_name_errors(crd: ObjectView, spec: ObjectView) -> Iterator[FieldError]:
    group, wanted = str(spec.get("group", "")), spec.get("names") or {}
    plural, name = str(wanted.get("plural", "")), dig(crd, "metadata", "name", default="")
    if name != f"{plural}.{group}":
        detail = f'must be spec.names.plural+"."+spec.group, here "{plural}.{group}"'
        yield FieldError(Reason.INVALID, "metadata.name", name, detail)
    fault = names.find_subdomain_fault(group) if group else "must not be empty"
    if fault or "." not in group:
        detail = fault or "should be a domain with at least one dot"
        yield FieldError(Reason.INVALID, "spec.group", group, detail)
    for field in ("plural", "singular", "kind", "listKind"):
        value = str(wanted.get(field, ""))
        fault = names.find_label_1035_fault(value.lower()) if value else "must not be empty"
        if fault:
            yield FieldError(Reason.INVALID, f"spec.names.{field}", value, fault)
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        detail = 'supported values: "Cluster", "Namespaced"'
        yield FieldError(Reason.NOT_SUPPORTED, "spec.scope", spec.get("scope"), detail)


def _find_version_errors(spec: ObjectView) -> Iterator[FieldError]:
    versions = spec.get("versions") or ()
    storage = [version for version in versions if version.get("storage")]
    if len(storage) != 1:
        detail = "must have exactly one version marked as storage version"
        yield FieldError(Reason.INVALID, "spec.versions", len(storage), detail)
    for index, version in enumerate(versions):
        place = f"spec.versions[{index}]"
        fault = names.find_label_1035_fault(str(version.get("name", "")))
        if fault:
            yield FieldError(Reason.INVALID, f"{place}.name", version.get("name"), fault)
        schema = dig(version, "schema", "openAPIV3Schema")
        where = f"{place}.schema.openAPIV3Schema"
        if not isinstance(schema, dict):
            yield FieldError(Reason.REQUIRED, where, detail="schemas are required")
            continue
        if schema.get("type") != "object":
            detail = 'must be "object" at the root'
            yield FieldError(Reason.INVALID, f"{where}.type", schema.get("type"), detail)
        found = list(find_structural_errors(schema, where))
        yield from found
        if not found:
            yield from find_rule_compile_errors(schema, where)


def find_structural_errors(schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """What keeps a schema from being structural: missing types, bad patterns, keys, defaults."""
    kind = schema.get("type")
    is_open = schema.get("x-kubernetes-int-or-string") or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    if kind is None and not is_open:
        yield FieldError(Reason.REQUIRED, f"{path}.type", detail="must not be empty")
    elif kind is not None and kind not in _TYPES:
        yield FieldError(Reason.NOT_SUPPORTED, f"{path}.type", kind, ", ".join(_TYPES))
        return
    if "$ref" in schema:
        yield FieldError(Reason.FORBIDDEN, f"{path}.$ref", detail="$ref is not supported")
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield FieldError(Reason.REQUIRED, f"{path}.items", detail="must be specified")
    if schema.get("properties") and schema.get("additionalProperties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield FieldError(Reason.FORBIDDEN, f"{path}.additionalProperties", detail=detail)
    yield from _find_pattern_errors(schema, path)
    yield from _find_list_errors(schema, path)
    if "default" in schema:
        holder = {"properties": {"default": schema}}
        for error in find_schema_errors(holder, {"default": schema["default"]}):
            yield FieldError(error.reason, f"{path}.{error.path}", error.value, error.detail)
    for name, part in (schema.get("properties") or {}).items():
        yield from find_structural_errors(part, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from find_structural_errors(schema[name], f"{path}.{name}")


def _find_pattern_errors(schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if "pattern" in schema:
        try:
            compile_pattern(schema["pattern"])
        except ValueError as error:
            yield FieldError(Reason.INVALID, f"{path}.pattern", schema["pattern"], str(error))


def _find_list_errors(schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    list_type = schema.get("x-kubernetes-list-type")
    if list_type is None:
        return
    place = f"{path}.x-kubernetes-list-type"
    if list_type not in _LIST_TYPES:
        yield FieldError(Reason.NOT_SUPPORTED, place, list_type, ", ".join(_LIST_TYPES))
    elif list_type == "map":
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        known = dig(schema, "items", "properties", default={})
        if not keys:
            detail = "must have at least one key"
            yield FieldError(Reason.REQUIRED, f"{path}.x-kubernetes-list-map-keys", detail=detail)
        for key in keys:
            if key not in known:
                detail = "entries must all be names of item properties"
                where = f"{path}.x-kubernetes-list-map-keys"
                yield FieldError(Reason.INVALID, where, key, detail)


def _find_change_errors(spec: ObjectView, old: ObjectView) -> Iterator[FieldError]:
    if not old:
        return
    for field in ("group", "scope"):
        if spec.get(field) != old.get(field):
            detail = "field is immutable"
            yield FieldError(Reason.INVALID, f"spec.{field}", spec.get(field), detail)
    for field in ("kind", "plural"):
        before, after = dig(old, "names", field), dig(spec, "names", field)
        if before != after:
            detail = "field is immutable"
            yield FieldError(Reason.INVALID, f"spec.names.{field}", after, detail)
