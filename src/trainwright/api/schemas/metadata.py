"""Definitions of apimachinery: ObjectMeta, references, selectors, conditions."""

from __future__ import annotations

from trainwright.api.schemas.structural import (
    Schema,
    atomic,
    atomic_obj,
    boolean,
    int64,
    keyed,
    merged,
    obj,
    open_obj,
    set_of,
    strict_time,
    string,
    string_map,
    strings,
    time,
)

OWNER_REFERENCE = atomic_obj(
    "An object that this one belongs to and goes away with.",
    {
        "apiVersion": string("API group and version of the owner."),
        "kind": string("Kind of the owner."),
        "name": string("Name of the owner."),
        "uid": string("UID of the owner; another object of the same name is no owner."),
        "controller": boolean("Whether the owner is the one controller of this object."),
        "blockOwnerDeletion": boolean("Whether a foreground deletion of the owner waits for this."),
    },
    ("apiVersion", "kind", "name", "uid"),
)

MANAGED_FIELDS_ENTRY = obj(
    "The fields that one manager set.",
    {
        "manager": string("Name of the manager."),
        "operation": string("Apply or Update."),
        "apiVersion": string("Version of the object in which the fields are named."),
        "time": time("When the fields were last changed."),
        "fieldsType": string("Always FieldsV1."),
        "fieldsV1": open_obj("The set of fields."),
        "subresource": string("Subresource through which the fields were written."),
    },
)

_FINALIZERS = merged(
    set_of({"type": "string"}, "What has to happen before the object may go away.")
)

OBJECT_META = obj(
    "Standard metadata: names, labels, owners and what the server keeps about the object.",
    {
        "name": string("Name, unique among the kind within the namespace."),
        "generateName": string("Prefix from which the server makes a name when none is given."),
        "namespace": string("Namespace of the object; empty for cluster-scoped kinds."),
        "selfLink": string("No longer filled."),
        "uid": string("Identity of this one object, never used again."),
        "resourceVersion": string("Changes with each write; opaque to clients."),
        "generation": int64("Counts changes of the desired state."),
        "creationTimestamp": time("When the server created the object."),
        "deletionTimestamp": time("When the object will be or was to be gone."),
        "deletionGracePeriodSeconds": int64("Seconds the object may take to go."),
        "labels": string_map("Keys and values by which objects are selected."),
        "annotations": string_map("Keys and values for tools; never selected by."),
        "ownerReferences": keyed("uid", OWNER_REFERENCE, "Objects that this one belongs to."),
        "finalizers": _FINALIZERS,
        "managedFields": atomic(MANAGED_FIELDS_ENTRY, "Which manager set which fields."),
    },
)

EMBEDDED_META = obj(
    "Metadata of an object inside a spec.",
    {
        "name": string(),
        "namespace": string(),
        "labels": string_map("Labels of the object that is made from here."),
        "annotations": string_map("Annotations of the object that is made from here."),
        "finalizers": _FINALIZERS,
    },
)

OBJECT_REFERENCE = atomic_obj(
    "Another object, as an event or a status names it.",
    {
        "apiVersion": string(),
        "kind": string(),
        "namespace": string(),
        "name": string(),
        "uid": string(),
        "resourceVersion": string(),
        "fieldPath": string("The part meant, such as `spec.containers{node}`."),
    },
)

LOCAL_OBJECT_REFERENCE = atomic_obj(
    "An object of the same namespace.", {"name": string("Name of the object.", default="")}
)

TYPED_LOCAL_OBJECT_REFERENCE = atomic_obj(
    "An object of the same namespace and a named kind.",
    {"apiGroup": string(), "kind": string(), "name": string()},
    ("kind", "name"),
)

TYPED_OBJECT_REFERENCE = obj(
    "An object of a named kind.",
    {"apiGroup": string(), "kind": string(), "name": string(), "namespace": string()},
    ("kind", "name"),
)

_REQUIREMENT = {
    "key": string("Label key."),
    "operator": string("In, NotIn, Exists or DoesNotExist."),
    "values": strings("Values for In and NotIn."),
}

LABEL_SELECTOR = atomic_obj(
    "Selects objects by label; all parts must hold.",
    {
        "matchLabels": string_map("Labels that must have exactly these values."),
        "matchExpressions": atomic(
            obj("One requirement.", _REQUIREMENT, ("key", "operator")), "Further requirements."
        ),
    },
)

CONDITION = obj(
    "One aspect of the state of an object.",
    {
        "type": string(
            "Name of the aspect.",
            maxLength=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
        "status": string("Whether it holds.", enum=["True", "False", "Unknown"]),
        "reason": string(
            "Why, in one word for programs.",
            minLength=1,
            maxLength=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
        "message": string("Why, in a sentence for people.", maxLength=32768),
        "lastTransitionTime": strict_time("When the status last changed."),
        "observedGeneration": int64("Generation that the condition speaks of.", minimum=0),
    },
    ("lastTransitionTime", "message", "reason", "status", "type"),
)


def conditions(description: str, **facets: int) -> Schema:
    """Conditions of a custom kind: a list map by type."""
    return keyed("type", CONDITION, description, **facets)
