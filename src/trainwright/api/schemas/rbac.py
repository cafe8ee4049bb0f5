"""Roots of rbac.authorization.k8s.io, which are kept but do nothing on a laptop."""

from __future__ import annotations

from trainwright.api.schemas.metadata import LABEL_SELECTOR
from trainwright.api.schemas.structural import Schema, atomic, atomic_obj, obj, string, strings

_RULES = atomic(
    obj(
        "What may be done to which resources.",
        {
            "apiGroups": strings("API groups; the empty one is core."),
            "nonResourceURLs": strings("Paths that are no resources."),
            "resourceNames": strings("Names of objects; all when empty."),
            "resources": strings("Plural names of kinds."),
            "verbs": strings("What may be done."),
        },
        ("verbs",),
    ),
    "Rights that the role gives.",
)

_ROLE_REF = atomic_obj(
    "The role that is given.",
    {"apiGroup": string(default="rbac.authorization.k8s.io"), "kind": string(), "name": string()},
    ("kind", "name"),
)

_SUBJECTS = atomic(
    atomic_obj(
        "One who gets the role.",
        {"apiGroup": string(), "kind": string(), "name": string(), "namespace": string()},
        ("kind", "name"),
    ),
    "Who gets the role.",
)

_BINDING = {"roleRef": _ROLE_REF, "subjects": _SUBJECTS}

ROOTS: dict[str, Schema] = {
    "Role": obj("Rights in a namespace.", {"rules": _RULES}),
    "ClusterRole": obj(
        "Rights in all namespaces.",
        {
            "aggregationRule": obj("", {"clusterRoleSelectors": atomic(LABEL_SELECTOR)}),
            "rules": _RULES,
        },
    ),
    "RoleBinding": obj("Gives a role in a namespace.", _BINDING, ("roleRef",)),
    "ClusterRoleBinding": obj("Gives a role everywhere.", _BINDING, ("roleRef",)),
}
