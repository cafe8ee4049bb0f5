"""The two views of events: of the core group and of events.k8s.io."""

from __future__ import annotations

from trainwright.api.schemas.metadata import OBJECT_REFERENCE
from trainwright.api.schemas.structural import Schema, described, int32, obj, string, time

_SOURCE = obj("Who told it, as old clients say.", {"component": string(), "host": string()})
_SERIES = obj("How often it was seen lately.", {"count": int32(), "lastObservedTime": time()})
_OBJECT = described(OBJECT_REFERENCE, "The object that the event is about.")
_RELATED = described(OBJECT_REFERENCE, "A second object that has to do with it.")

CORE_EVENT: Schema = obj(
    "Something that happened to an object.",
    {
        "action": string("What was being done."),
        "count": int32("How often it happened."),
        "eventTime": time("When it was first seen."),
        "firstTimestamp": time("When it was first seen, as old clients say."),
        "involvedObject": _OBJECT,
        "lastTimestamp": time("When it was last seen."),
        "message": string("What happened, in a sentence."),
        "reason": string("Why, in one word."),
        "related": _RELATED,
        "reportingComponent": string("Controller that told it.", default=""),
        "reportingInstance": string("Instance of the controller.", default=""),
        "series": _SERIES,
        "source": _SOURCE,
        "type": string("Normal or Warning."),
    },
    ("involvedObject",),
)

ROOTS: dict[str, Schema] = {
    "Event": obj(
        "Something that happened to an object.",
        {
            "action": string("What was being done."),
            "deprecatedCount": int32(),
            "deprecatedFirstTimestamp": time(),
            "deprecatedLastTimestamp": time(),
            "deprecatedSource": _SOURCE,
            "eventTime": time("When it was first seen."),
            "note": string("What happened, in a sentence."),
            "reason": string("Why, in one word."),
            "regarding": _OBJECT,
            "related": _RELATED,
            "reportingController": string("Controller that told it."),
            "reportingInstance": string("Instance of the controller."),
            "series": _SERIES,
            "type": string("Normal or Warning."),
        },
    )
}
