"""Label and field selectors: how they are written, and which objects they choose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.base.errors import BadRequest
from trainwright.base.objects import dig
from trainwright.core.names import find_label_value_fault, find_qualified_name_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import ObjectView

_TOKEN = re.compile(r"\s*(?:(==|!=|[=!,()<>])|([^\s=!,()<>]+))")


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil it. NotIn also holds where the label is absent."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        try:
            wanted, seen = int(self.values[0]), int(value or "")
        except ValueError:
            return False
        return seen > wanted if self.operator == "Gt" else seen < wanted

    def __str__(self) -> str:
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "Gt" | "Lt":
                return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{self.values[0]}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'In' else '!='}{self.values[0]}"
        return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold; none at all chooses everything."""

    requirements: tuple[LabelRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is chosen."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def exact(self) -> dict[str, str]:
        """The labels whose one value is demanded: what an index can look up."""
        return {
            requirement.key: requirement.values[0]
            for requirement in self.requirements
            if requirement.operator == "In" and len(requirement.values) == 1
        }

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = LabelSelector()


def parse_label_selector(text: str) -> LabelSelector:
    """Read the written form, such as `app=web,tier in (a, b),!legacy`.

    Raises:
        BadRequest: when the text is no selector.

    Source: Kubernetes, list and watch options, `labelSelector`.
    """
    if not text.strip():
        return EVERYTHING
    return _LabelParser(text).parse()


def _check_requirement(requirement: LabelRequirement) -> LabelRequirement:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if find_qualified_name_fault(key):
        raise BadRequest(
            f'unable to parse requirement: <nil>: Invalid value: "{key}": not a label key'
        )
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
        raise BadRequest(f'"{operator}" is not a valid label selector operator')
    if operator in ("In", "NotIn") and not values:
        raise BadRequest(f'label selector: operator "{operator}" of "{key}" needs values')
    if operator in ("Exists", "DoesNotExist") and values:
        raise BadRequest(f'label selector: operator "{operator}" of "{key}" takes no values')
    if operator in ("Gt", "Lt") and not re.fullmatch(r"[+-]?\d+", values[0] if values else ""):
        raise BadRequest(f'label selector: operator "{operator}" of "{key}" needs one whole number')
    for value in values:
        if find_label_value_fault(str(value)):
            raise BadRequest(
                f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": '
                "not a label value"
            )
    return requirement


class _LabelParser:
    """Reads one written label selector, token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [(m[1] or "", m[2] or "") for m in _TOKEN.finditer(text)]
        self.at = 0

    def parse(self) -> LabelSelector:
        requirements = [self.requirement()]
        while self.at < len(self.tokens):
            self.expect(",")
            requirements.append(self.requirement())
        return LabelSelector(tuple(requirements))

    def requirement(self) -> LabelRequirement:
        if self.symbol() == "!":
            self.at += 1
            return _check_requirement(LabelRequirement(self.word(), "DoesNotExist"))
        key = self.word()
        symbol, word = self.symbol(), self.peek_word()
        if symbol in ("=", "==", "!=", ">", "<"):
            self.at += 1
            operator = {"!=": "NotIn", ">": "Gt", "<": "Lt"}.get(symbol, "In")
            value = self.word() if self.peek_word() else ""
            return _check_requirement(LabelRequirement(key, operator, (value,)))
        if word in ("in", "notin"):
            self.at += 1
            operator = "In" if word == "in" else "NotIn"
            return _check_requirement(LabelRequirement(key, operator, self.values()))
        return _check_requirement(LabelRequirement(key, "Exists"))

    def values(self) -> tuple[str, ...]:
        self.expect("(")
        values: set[str] = set()
        while True:
            values.add(self.word() if self.peek_word() else "")
            if self.symbol() != ",":
                break
            self.at += 1
        self.expect(")")
        return tuple(sorted(values))

    def symbol(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def peek_word(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def word(self) -> str:
        word = self.peek_word()
        if not word:
            self.refuse("a name")
        self.at += 1
        return word

    def expect(self, symbol: str) -> None:
        if self.symbol() != symbol:
            self.refuse(f'"{symbol}"')
        self.at += 1

    def refuse(self, wanted: str) -> None:
        found = "".join(self.tokens[self.at]) if self.at < len(self.tokens) else ""
        raise BadRequest(
            f'unable to parse requirement: found "{found}", expected: {wanted} '
            f'in label selector "{self.text}"'
        )


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One condition on one selectable field."""

    path: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        escaped = re.sub(r"([\\,=])", r"\\\1", self.value)
        return f"{self.path}{'=' if self.equal else '!='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Requirements on fields that must all hold."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, kind: Kind, obj: ObjectView) -> bool:
        """Whether the object is chosen; an absent field counts as empty."""
        return all(
            (read_field(kind, obj, requirement.path) == requirement.value) == requirement.equal
            for requirement in self.requirements
        )

    def exact(self, path: str) -> str | None:
        """The value demanded of that field, if one is: `metadata.name` makes a list a get."""
        return next((r.value for r in self.requirements if r.path == path and r.equal), None)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def parse_field_selector(text: str) -> FieldSelector:
    r"""Read the written form, such as `status.phase!=Running,metadata.name=a`; `\` escapes.

    Raises:
        BadRequest: when the text is no selector.
    """
    requirements = []
    for term in re.findall(r"(?:\\.|[^,\\])+", text):
        match = re.fullmatch(r"\s*([^=!\s]+)\s*(==|!=|=)((?:\\[\\,=]|[^\\=])*)", term)
        if match is None:
            raise BadRequest(f'invalid field selector: "{text}"; can\'t understand "{term}"')
        value = re.sub(r"\\([\\,=])", r"\1", match[3])
        requirements.append(FieldRequirement(match[1], value.strip(), match[2] != "!="))
    return FieldSelector(tuple(requirements))


_METADATA_FIELDS = ("metadata.name", "metadata.namespace")
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SELECTABLE: Mapping[Kind, tuple[str, ...]] = {
    kinds.POD: (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    kinds.EVENT: (
        *(f"involvedObject.{name}" for name in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    kinds.EVENT_V1: (
        *(f"regarding.{name}" for name in _INVOLVED),
        "reason",
        "reportingController",
        "type",
    ),
    kinds.JOB: ("status.successful",),
    kinds.SECRET: ("type",),
    kinds.NAMESPACE: ("status.phase",),
    kinds.NODE: ("spec.unschedulable",),
    kinds.SERVICE: ("spec.clusterIP", "spec.type"),
}


def selectable_fields(kind: Kind, extra: Iterable[str] = ()) -> tuple[str, ...]:
    """The fields that a list of this kind may be selected by; `extra` comes from its CRD."""
    return (*_METADATA_FIELDS, *_SELECTABLE.get(kind, ()), *extra)


def check_field_selector(kind: Kind, selector: FieldSelector, extra: Iterable[str] = ()) -> None:
    """Refuse a selector over fields that the kind does not offer.

    Raises:
        BadRequest: naming the field.
    """
    allowed = selectable_fields(kind, extra)
    for requirement in selector.requirements:
        if requirement.path not in allowed:
            raise BadRequest(f'field label not supported: "{requirement.path}"')


def read_field(kind: Kind, obj: ObjectView, path: str) -> str:
    """One selectable field as text; absent is empty, as upstream compares it."""
    if kind is kinds.JOB and path == "status.successful":
        return str(dig(obj, "status", "succeeded", default=0))
    if kind is kinds.EVENT and path == "source":
        component = dig(obj, "source", "component") or obj.get("reportingComponent")
        return str(component or "")
    value = dig(obj, *path.removeprefix(".").split("."))
    if value is None:
        return "false" if path in ("spec.hostNetwork", "spec.unschedulable") else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
