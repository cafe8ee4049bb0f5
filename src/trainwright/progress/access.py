"""Who may report for a TrainJob: the pods of its JobSet, by the token that they mount."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from trainwright.api.kinds import POD, TRAINJOB
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.errors import NotFound
from trainwright.base.objects import labels_of, uid_of
from trainwright.core.plugins.trainjobstatus.names import status_audience
from trainwright.core.progress.desk import Subject

if TYPE_CHECKING:
    from trainwright.base.times import Clock
    from trainwright.machinery.api import Api

VERDICT_S = 60.0
"""How long a pod that has just been deleted may go on reporting."""
SUBJECT_S = 10.0
"""How long posts for a TrainJob that has just been deleted are answered 200."""
MOST_KEPT = 20_000

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """What a valid token says about the pod that mounts it."""

    namespace: str
    pod_name: str = ""
    pod_uid: str = ""


class TokenReader(Protocol):
    """Whoever knows the tokens of this cluster."""

    async def read(self, token: str, audience: str) -> Bearer | None:
        """The bearer of a token that is valid for `audience`, else None."""
        ...


class Access:
    """Finds TrainJobs, and holds tokens against their pods."""

    def __init__(self, api: Api, tokens: TokenReader, clock: Clock) -> None:
        self._api = api
        self._tokens = tokens
        self._verdicts: _Kept[bytes, bool] = _Kept(clock, VERDICT_S)
        self._subjects: _Kept[tuple[str, str], Subject] = _Kept(clock, SUBJECT_S)

    async def may_report(self, token: str, namespace: str, name: str) -> bool:
        """Whether the token is that of a pod of this TrainJob.

        Differs: Trainer 2.3 takes any token of the namespace that has the audience.
        """
        audience = status_audience(namespace, name)
        # Tokens are secrets: what is kept is their hash.
        key = hashlib.sha256(f"{audience}\n{token}".encode()).digest()
        verdict = self._verdicts.get(key)
        if verdict is None:
            bearer = await self._tokens.read(token, audience)
            verdict = bearer is not None and await self._is_pod_of(bearer, namespace, name)
            self._verdicts.put(key, verdict)
        return verdict

    async def find_subject(self, namespace: str, name: str) -> Subject | None:
        """The TrainJob that has the name now, or None."""
        subject = self._subjects.get((namespace, name))
        if subject is None:
            try:
                trainjob = await self._api.get(TRAINJOB, namespace, name)
            except NotFound:
                return None
            subject = Subject(namespace=namespace, name=name, uid=uid_of(trainjob))
            self._subjects.put((namespace, name), subject)
        return subject

    def forget(self, subject: Subject) -> None:
        """The TrainJob was seen to be gone."""
        self._subjects.drop((subject.namespace, subject.name))

    async def _is_pod_of(self, bearer: Bearer, namespace: str, name: str) -> bool:
        if bearer.namespace != namespace or not bearer.pod_name:
            return False
        try:
            pod = await self._api.get(POD, namespace, bearer.pod_name)
        except NotFound:
            return False
        return uid_of(pod) == bearer.pod_uid and labels_of(pod).get(JOBSET_NAME_LABEL) == name


Key = TypeVar("Key")


class _Kept(Generic[Key, Value]):
    """Answers that stand for a while; the oldest go first when there are too many."""

    def __init__(self, clock: Clock, lifetime_s: float) -> None:
        self._clock = clock
        self._lifetime_s = lifetime_s
        self._values: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        kept = self._values.get(key)
        return kept[1] if kept is not None and kept[0] > self._clock.monotonic() else None

    def put(self, key: Key, value: Value) -> None:
        self._values.pop(key, None)
        self._values[key] = (self._clock.monotonic() + self._lifetime_s, value)
        while len(self._values) > MOST_KEPT:
            self._values.popitem(last=False)

    def drop(self, key: Key) -> None:
        self._values.pop(key, None)
