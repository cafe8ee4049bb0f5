"""What the API server serves of the kinds that we need, and what its schemas lack."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trainwright.api.kinds import JOBSET, TRAINER_KINDS
from trainwright.api.schemas.registry import schema_of
from trainwright.base.errors import ApiError, NotFound, Unreachable
from trainwright.base.objects import dig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object

logger = logging.getLogger(__name__)

RETRY_S = 2.0
REMIND_S = 300.0
MAX_FIELDS_NAMED = 8
_NOT_COMPARED = ("template", "metadata", "status")
"""Pod and Job templates follow the cluster's own version, not that of a CRD."""


@dataclass(frozen=True, slots=True)
class Need:
    """A kind of which somebody has to install the CRD."""

    group: str
    version: str
    plural: str
    way_out: str

    @property
    def resource(self) -> str:
        """`plural.group`."""
        return f"{self.plural}.{self.group}"


def _need(kind: Kind, way_out: str) -> Need:
    return Need(kind.group, kind.version, kind.plural, way_out)


REQUIRED = (
    *(_need(kind, "install the CRDs of Trainwright") for kind in TRAINER_KINDS),
    _need(JOBSET, "install JobSet (its CRD and controller), version 0.8 or newer"),
)
OPTIONAL = (
    Need(
        "leaderworkerset.x-k8s.io",
        "v1",
        "leaderworkersets",
        "install LeaderWorkerSet if the data cache is wanted",
    ),
)


class Server(Protocol):
    """The raw requests that discovery needs."""

    async def request(self, method: str, path: str) -> Object:
        """One request with a JSON answer."""
        ...


async def find_missing(server: Server, needs: Sequence[Need]) -> Sequence[Need]:
    """The needs that the server does not serve."""
    served: dict[str, set[str]] = {}
    for need in needs:
        path = f"/apis/{need.group}/{need.version}"
        if path not in served:
            try:
                answer = await server.request("GET", path)
            except NotFound:
                answer = {}
            served[path] = {row["name"] for row in answer.get("resources") or ()}
    return [
        need for need in needs if need.plural not in served[f"/apis/{need.group}/{need.version}"]
    ]


class ServedKinds:
    """Waits until every required kind is served, saying what is missing. A `Runnable`."""

    name = "served kinds"
    needs_lease = False

    def __init__(self, server: Server) -> None:
        self._server = server
        self._unready = "the API server was not reached yet"
        self.complete = asyncio.Event()
        """Set once every required kind is served."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Look until everything is there, then compare schemas once."""
        told, waited_s = "", 0.0
        while not stopping.is_set():
            try:
                missing = await find_missing(self._server, REQUIRED)
                self._unready = ""
                if not missing:
                    break
                text = "; ".join(
                    f"{need.resource} is not served: {need.way_out}" for need in missing
                )
            except (ApiError, Unreachable) as error:
                text = self._unready = f"the API server does not answer: {error}"
            if text != told or waited_s >= REMIND_S:
                logger.error("%s; waiting, nothing is reconciled until then", text)
                told, waited_s = text, 0.0
            await _pause(stopping)
            waited_s += RETRY_S
        if not stopping.is_set():
            if told:
                logger.info("every required kind is served now")
            self.complete.set()
            await self._look_closer()
        await stopping.wait()

    def find_unready(self) -> str:
        """Not ready before the server answered once."""
        return self._unready

    async def _look_closer(self) -> None:
        try:
            for need in await find_missing(self._server, OPTIONAL):
                logger.info("%s is not served: %s", need.resource, need.way_out)
            for kind in (*TRAINER_KINDS, JOBSET):
                lacking = await find_lacking_fields(self._server, kind)
                if lacking:
                    named = ", ".join(lacking[:MAX_FIELDS_NAMED])
                    logger.warning(
                        "the CRD of %s is older than this program: it lacks %s%s; what uses these is "
                        "refused or dropped, so bring the CRD up to date",
                        kind.resource,
                        named,
                        " and more" if len(lacking) > MAX_FIELDS_NAMED else "",
                    )
        except (ApiError, Unreachable) as error:
            logger.warning("the served schemas could not be compared: %s", error)


async def _pause(stopping: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(RETRY_S):
            await stopping.wait()
    except TimeoutError:
        pass


async def find_lacking_fields(server: Server, kind: Kind) -> Sequence[str]:
    """Paths of fields that we know and the served schema does not."""
    document = await server.request("GET", f"/openapi/v3/apis/{kind.api_version}")
    wanted = schema_of(kind)
    served = _find_schema(document, kind)
    if wanted is None or served is None:
        return ()
    return tuple(compare_schemas(wanted, served))


def _find_schema(document: Object, kind: Kind) -> Mapping[str, Any] | None:
    identity = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    schemas: Mapping[str, Any] = dig(document, "components", "schemas", default={})
    for schema in schemas.values():
        if identity in (schema.get("x-kubernetes-group-version-kind") or ()):
            found: Mapping[str, Any] = schema
            return found
    return None


def compare_schemas(
    wanted: Mapping[str, Any], served: Mapping[str, Any], path: str = ""
) -> Iterator[str]:
    """Paths of properties that `wanted` has and `served` lacks, templates left out."""
    if "$ref" in served or served.get("x-kubernetes-preserve-unknown-fields"):
        return
    properties: Mapping[str, Any] = served.get("properties") or {}
    for name, schema in (wanted.get("properties") or {}).items():
        if name in _NOT_COMPARED and path:
            continue
        if name in {"metadata", "status"}:
            continue
        below = f"{path}.{name}" if path else name
        if name not in properties:
            if properties:
                yield below
            continue
        yield from compare_schemas(schema, properties[name], below)
    if "items" in wanted and "items" in served:
        yield from compare_schemas(wanted["items"], served["items"], f"{path}[]")
