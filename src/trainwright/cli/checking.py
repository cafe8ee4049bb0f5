"""What an API server would say of manifests, found out without one."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import yaml

from trainwright.api.kinds import TRAINJOB, find_kind
from trainwright.api.schemas.registry import schema_of
from trainwright.base.errors import FieldError, Reason, TrainwrightError
from trainwright.base.objects import Object, dig, name_of, namespace_of
from trainwright.core.admission import Admission, Request, build_admission
from trainwright.core.findings import Finding
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.core.trainjob.render import Rendered, join_path, join_place, render_trainjob
from trainwright.schema.defaulting import apply_defaults
from trainwright.schema.pruning import prune
from trainwright.schema.verdict import find_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Json

DEFAULT_NAMESPACE = "default"
VALUE_WIDTH = 44
ORIGIN_COLUMN = 58
"""Where origins stand, unless a line is longer."""
GENERATED_END = "xxxxx"
"""Stands for the letters that a server puts behind `generateName`."""


class RenderError(TrainwrightError, ValueError):
    """A manifest that cannot be rendered, and why."""


class OfflineLookup:
    """The objects of a manifest, and the shipped runtimes, as the rules look them up."""

    def __init__(self, objects: Sequence[Object]) -> None:
        self._objects = [*objects, *load_shipped_runtimes()]

    def __call__(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object of that kind and name; the manifest's own comes first."""
        return next((obj for obj in self._objects if self._is(obj, kind, namespace, name)), None)

    @staticmethod
    def _is(obj: Object, kind: Kind, namespace: str, name: str) -> bool:
        return (
            obj.get("kind") == kind.kind
            and name_of(obj) == name
            and (not kind.namespaced or (namespace_of(obj) or DEFAULT_NAMESPACE) == namespace)
        )


def find_findings(objects: Sequence[Object]) -> Sequence[Finding]:
    """Everything there is to say about the objects of a manifest."""
    lookup = OfflineLookup(objects)
    admission = build_admission()
    return [finding for obj in objects for finding in _find_in(obj, lookup, admission)]


def _find_in(
    obj: Object, lookup: OfflineLookup, admission: Mapping[Kind, Admission]
) -> Sequence[Finding]:
    subject = f"{obj['kind']} {namespace_of(obj) or DEFAULT_NAMESPACE}/{name_of(obj)}"
    kind = find_kind(obj["apiVersion"], obj["kind"])
    if kind is None:
        evidence = f"{obj['apiVersion']} {obj['kind']} is a kind that is not known here"
        return [Finding(code="UnknownKind", subject=subject, evidence=evidence)]
    if not name_of(obj) and not dig(obj, "metadata", "generateName"):
        error = FieldError(
            Reason.REQUIRED, "metadata.name", detail="name or generateName is required"
        )
        return [_invalid_field(subject, error)]
    admitted, dropped = _admit(obj, kind, lookup, admission)
    unknown = [
        Finding(code="UnknownField", subject=subject, path=path, evidence="not a field of the kind")
        for path in dropped
    ]
    schema = schema_of(kind)
    errors = [] if schema is None else find_errors(schema, admitted)
    warnings: Sequence[str] = ()
    if not errors and (validate := _rules(kind, admission).validate):
        verdict = validate(_request(kind, admitted, lookup))
        errors, warnings = list(verdict.errors), verdict.warnings
    return [
        *unknown,
        *(_invalid_field(subject, error) for error in errors),
        *(Finding(code="AdmissionWarning", subject=subject, evidence=text) for text in warnings),
    ]


def _invalid_field(subject: str, error: FieldError) -> Finding:
    return Finding(code="InvalidField", subject=subject, path=error.path, evidence=error.message)


def _admit(
    obj: Object, kind: Kind, lookup: OfflineLookup, admission: Mapping[Kind, Admission]
) -> tuple[Object, Sequence[str]]:
    """The object with defaults, as admission would store it, and the fields that were dropped."""
    if kind.namespaced and not namespace_of(obj):
        obj = {**obj, "metadata": {**(obj.get("metadata") or {}), "namespace": DEFAULT_NAMESPACE}}
    if not name_of(obj):
        name = dig(obj, "metadata", "generateName", default="") + GENERATED_END
        obj = {**obj, "metadata": {**obj["metadata"], "name": name}}
    schema = schema_of(kind)
    dropped: Sequence[str] = ()
    if schema is not None:
        obj, dropped = prune(schema, obj)
        obj = apply_defaults(schema, obj)
    if default := _rules(kind, admission).default:
        obj = default(_request(kind, obj, lookup))
        obj = apply_defaults(schema, obj) if schema is not None else obj
    return obj, dropped


def _rules(kind: Kind, admission: Mapping[Kind, Admission]) -> Admission:
    return admission.get(kind, Admission())


def _request(kind: Kind, obj: Object, lookup: OfflineLookup) -> Request:
    return Request(kind=kind, new=obj, old=None, lookup=lookup, now=datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class RenderedJob:
    """A JobSet, and its fields with their origins, a line each."""

    jobset: Object
    lines: Sequence[str]


def render_job(objects: Sequence[Object], *, whole: bool = False) -> RenderedJob:
    """The JobSet of the one TrainJob among the objects.

    Args:
        objects: a manifest.
        whole: do not cut long values in the lines.

    Raises:
        RenderError: there is not exactly one TrainJob, or it is invalid.
    """
    jobs = [obj for obj in objects if obj["kind"] == TRAINJOB.kind]
    if len(jobs) != 1:
        raise RenderError(f"{len(jobs)} TrainJobs were seen, one was wanted")
    errors = [finding for finding in find_findings(objects) if finding.severity == "error"]
    if errors:
        raise RenderError("\n".join(str(finding) for finding in errors))
    lookup = OfflineLookup(objects)
    job, _ = _admit(jobs[0], TRAINJOB, lookup, build_admission())
    runtime = _find_runtime(job, lookup)
    rendered = render_trainjob(job, runtime)
    return RenderedJob(rendered.jobset, _render_lines(rendered, None if whole else VALUE_WIDTH))


def _find_runtime(job: Object, lookup: OfflineLookup) -> Object:
    ref = job["spec"]["runtimeRef"]
    kind = find_kind(TRAINJOB.api_version, ref["kind"])
    found = lookup(kind, namespace_of(job), ref["name"]) if kind else None
    if found is None or kind is None:
        raise RenderError(f'spec.runtimeRef: {ref["kind"]} "{ref["name"]}" not found')
    schema = schema_of(kind)
    return found if schema is None else apply_defaults(schema, found)


def _render_lines(rendered: Rendered, value_width: int | None) -> Sequence[str]:
    """The JobSet as YAML, each value with its origin behind it."""
    lines = [(_cut(text, value_width), path) for text, path in _walk(rendered.jobset, "", "")]
    width = min(ORIGIN_COLUMN, max(len(text) for text, _ in lines))
    return [
        f"{text:{width}}  # {said}" if (said := _explain(rendered, path)) else text
        for text, path in lines
    ]


def _walk(value: Json, path: str, indent: str) -> Iterator[tuple[str, str]]:
    """Lines of YAML, each with the JSON path of the value on it, or "" when there is none."""
    for head, item, place in _list_parts(value, path):
        if isinstance(item, dict | list) and item:
            if head == "-":
                # The first line of an element stands beside its dash.
                lines = list(_walk(item, place, indent + "  "))
                yield f"{indent}- {lines[0][0].lstrip()}", lines[0][1]
                yield from lines[1:]
            else:
                yield f"{indent}{head}", ""
                deeper = indent if isinstance(item, list) else indent + "  "
                yield from _walk(item, place, deeper)
        else:
            yield f"{indent}{head} {_render_value(item)}", place


def _list_parts(value: Json, path: str) -> Iterator[tuple[str, Json, str]]:
    """What stands in front of each part, the part, and its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{key}:", item, join_path(path, key)
    else:
        for index, item in enumerate(value):
            yield "-", item, join_place(path, index, item)


def _render_value(value: Json) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, allow_unicode=True)
    line = text.removesuffix("\n...\n").strip()
    if "\n" in line:
        line = json.dumps(value, ensure_ascii=False)
    return line


def _cut(line: str, value_width: int | None) -> str:
    """The line with its value cut to so many characters."""
    head = len(line) - len(line.lstrip(" -"))
    head = max(head, line.find(": ", head) + 2)
    if value_width is None or len(line) - head <= value_width:
        return line
    return line[: head + value_width - 3] + "..."


def _explain(rendered: Rendered, path: str) -> str:
    said = (rendered.origins.get(path, ""), rendered.reasons.get(path, ""))
    return ": ".join(part for part in said if part)
