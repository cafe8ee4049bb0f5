"""What the rules say of an object, with the other objects that they ask for read on the way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, TRAINING_RUNTIME
from trainwright.api.schemas.registry import schema_of
from trainwright.base.errors import (
    ApiError,
    FieldError,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    Unreachable,
    render_errors,
)
from trainwright.base.objects import name_of
from trainwright.core.admission import Request, build_admission
from trainwright.schema.verdict import find_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.core.admission import Admission
    from trainwright.machinery.api import Api, Lister

CACHED_KINDS = (TRAINING_RUNTIME, CLUSTER_TRAINING_RUNTIME)
"""Read from the lister when there is one. The others must be as they are now, or are not kept."""

INLINE_CHARACTERS = 64 * 1024
"""Reviews above this are judged in a thread, so that others need not wait."""
WRONG_SHAPE = (AttributeError, KeyError, TypeError, ValueError)
"""What rules raise over fields of another type than they expect; the schema words it better."""

Result = TypeVar("Result")
Key = tuple["Kind", str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is to be answered: `error` refuses, `after` is the object with its defaults."""

    error: ApiError | None = None
    after: Object | None = None
    warnings: Sequence[str] = ()


class _Wanted(Exception):
    """A rule asks for an object that has not been read yet."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.key = key


class Judge:
    """Applies the admission table; other objects come from `lister` or, live, from `api`."""

    def __init__(
        self,
        api: Api,
        lister: Lister | None,
        clock: Clock,
        admission: Mapping[Kind, Admission] | None = None,
    ) -> None:
        self._api = api
        self._lister = lister
        self._clock = clock
        self._admission = build_admission() if admission is None else admission

    async def default(self, kind: Kind, new: Object, old: Object | None, size: int) -> Judgement:
        """The object with its defaults. One that its schema refuses anyway stays as it is."""
        rule = self._admission[kind].default
        if rule is None:
            return Judgement(after=new)
        warnings: list[str] = []

        def apply(request: Request) -> Judgement:
            warnings.clear()
            try:
                return Judgement(after=rule(request), warnings=tuple(warnings))
            except WRONG_SHAPE:
                if not _find_faults(kind, new, old):
                    raise
                return Judgement(after=new)

        return await self._carry_out(apply, self._ask(kind, new, old, warnings), size)

    async def validate(self, kind: Kind, new: Object, old: Object | None, size: int) -> Judgement:
        """Whether the object may be stored.

        Runtimes are judged in today's form, which no webhook of theirs gives them beforehand.
        """
        rules = self._admission[kind]
        warnings: list[str] = []

        def apply(request: Request) -> Judgement:
            warnings.clear()
            try:
                if kind in CACHED_KINDS and rules.default is not None:
                    request = replace(request, new=rules.default(request))
                if rules.validate is None:
                    return Judgement()
                verdict = rules.validate(request)
            except WRONG_SHAPE:
                faults = _find_faults(kind, new, old)
                if not faults:
                    raise
                return Judgement(error=_refuse_shape(kind, new, faults))
            # As everywhere: a refusal carries no causes, its text says all.
            error = Forbidden(render_errors(verdict.errors)) if verdict.errors else None
            return Judgement(error=error, warnings=(*warnings, *verdict.warnings))

        return await self._carry_out(apply, self._ask(kind, new, old, warnings), size)

    def _ask(self, kind: Kind, new: Object, old: Object | None, warnings: list[str]) -> Request:
        return Request(
            kind=kind,
            new=new,
            old=old,
            lookup=_refuse_lookup,
            now=self._clock.now(),
            warn=warnings.append,
        )

    async def _carry_out(
        self, apply: Callable[[Request], Result], request: Request, size: int
    ) -> Result:
        """Run a rule, again each time it has asked for an object that had to be read first.

        Rules are pure and ask for a handful of objects at most.

        Raises:
            InternalError: an object could not be read.
        """
        known: dict[Key, Object | None] = {}

        def look_up(kind: Kind, namespace: str, name: str) -> Object | None:
            key = (kind, namespace, name)
            if key not in known:
                raise _Wanted(key)
            return known[key]

        request = replace(request, lookup=look_up)
        while True:
            try:
                if size > INLINE_CHARACTERS:
                    return await asyncio.to_thread(apply, request)
                return apply(request)
            except _Wanted as wanted:
                known[wanted.key] = await self._read(*wanted.key)

    async def _read(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object; a miss in the lister is asked live, for it may have been made just now."""
        if not name or (kind.namespaced and not namespace):
            return None
        if self._lister is not None and kind in CACHED_KINDS:
            found = self._lister.get(kind, namespace, name)
            if found is not None:
                return found
        try:
            return await self._api.get(kind, namespace, name)
        except NotFound:
            return None
        except (ApiError, Unreachable) as error:
            raise InternalError(
                f'{kind.kind} "{name}" could not be read: {error}; try again'
            ) from error


def _refuse_lookup(kind: Kind, namespace: str, name: str) -> Object | None:
    raise _Wanted((kind, namespace, name))


def _find_faults(kind: Kind, new: Object, old: Object | None) -> Sequence[FieldError]:
    """What the API server finds, or will find after the mutating webhooks."""
    schema = schema_of(kind)
    if schema is None:
        return ()
    return find_errors(schema, new, old)


def _refuse_shape(kind: Kind, new: Object, faults: Sequence[FieldError]) -> ApiError:
    text = f'{kind.qualified_kind} "{name_of(new)}" is invalid: {render_errors(faults)}'
    details = {
        "name": name_of(new),
        "group": kind.group,
        "kind": kind.kind,
        "causes": [fault.to_cause() for fault in faults],
    }
    return Invalid(text, details=details)
