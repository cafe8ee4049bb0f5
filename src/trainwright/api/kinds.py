"""The kinds we know: group, version, plural, names, scope and subresources, once.

REST routes, discovery, CRDs and the CLI's nouns are produced from this table.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object as an API server serves it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = field(default_factory=frozenset)
    """Subresources that are served: `status`, `scale`, `log`, `exec`, `attach`, `finalize`, …"""
    has_generation: bool = True
    """Whether writes of the spec count `metadata.generation` up."""

    @property
    def api_version(self) -> str:
        """`group/version`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return f"{self.kind}List"

    @property
    def resource(self) -> str:
        """`plural.group` as messages name it; the core group is left out."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """`Kind.group` as messages about invalid objects name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The REST path of the collection, the object or the subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


def _status(*more: str) -> frozenset[str]:
    return frozenset({"status", *more})


TRAINJOB = Kind(
    "trainer.kubeflow.org",
    "v1alpha1",
    "TrainJob",
    "trainjobs",
    singular="trainjob",
    subresources=_status(),
)
TRAINING_RUNTIME = Kind(
    "trainer.kubeflow.org",
    "v1alpha1",
    "TrainingRuntime",
    "trainingruntimes",
    singular="trainingruntime",
)
CLUSTER_TRAINING_RUNTIME = Kind(
    "trainer.kubeflow.org",
    "v1alpha1",
    "ClusterTrainingRuntime",
    "clustertrainingruntimes",
    namespaced=False,
    singular="clustertrainingruntime",
)
JOBSET = Kind(
    "jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", singular="jobset", subresources=_status()
)
JOB = Kind(
    "batch", "v1", "Job", "jobs", singular="job", categories=("all",), subresources=_status()
)

NAMESPACE = Kind(
    "",
    "v1",
    "Namespace",
    "namespaces",
    namespaced=False,
    singular="namespace",
    short_names=("ns",),
    subresources=_status("finalize"),
    has_generation=False,
)
POD = Kind(
    "",
    "v1",
    "Pod",
    "pods",
    singular="pod",
    short_names=("po",),
    categories=("all",),
    subresources=_status("log", "exec", "attach", "binding", "eviction"),
)
SERVICE = Kind(
    "",
    "v1",
    "Service",
    "services",
    singular="service",
    short_names=("svc",),
    categories=("all",),
    subresources=_status(),
    has_generation=False,
)
CONFIG_MAP = Kind(
    "",
    "v1",
    "ConfigMap",
    "configmaps",
    singular="configmap",
    short_names=("cm",),
    has_generation=False,
)
SECRET = Kind("", "v1", "Secret", "secrets", singular="secret", has_generation=False)
SERVICE_ACCOUNT = Kind(
    "",
    "v1",
    "ServiceAccount",
    "serviceaccounts",
    singular="serviceaccount",
    short_names=("sa",),
    subresources=frozenset({"token"}),
    has_generation=False,
)
NODE = Kind(
    "",
    "v1",
    "Node",
    "nodes",
    namespaced=False,
    singular="node",
    short_names=("no",),
    subresources=_status(),
    has_generation=False,
)
EVENT = Kind(
    "", "v1", "Event", "events", singular="event", short_names=("ev",), has_generation=False
)
EVENT_V1 = Kind(
    "events.k8s.io",
    "v1",
    "Event",
    "events",
    singular="event",
    short_names=("ev",),
    has_generation=False,
)
PERSISTENT_VOLUME_CLAIM = Kind(
    "",
    "v1",
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    singular="persistentvolumeclaim",
    short_names=("pvc",),
    subresources=_status(),
    has_generation=False,
)
RESOURCE_QUOTA = Kind(
    "",
    "v1",
    "ResourceQuota",
    "resourcequotas",
    singular="resourcequota",
    short_names=("quota",),
    subresources=_status(),
    has_generation=False,
)
LIMIT_RANGE = Kind(
    "",
    "v1",
    "LimitRange",
    "limitranges",
    singular="limitrange",
    short_names=("limits",),
    has_generation=False,
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", singular="lease", has_generation=False)
PRIORITY_CLASS = Kind(
    "scheduling.k8s.io",
    "v1",
    "PriorityClass",
    "priorityclasses",
    namespaced=False,
    singular="priorityclass",
    short_names=("pc",),
)
RUNTIME_CLASS = Kind(
    "node.k8s.io",
    "v1",
    "RuntimeClass",
    "runtimeclasses",
    namespaced=False,
    singular="runtimeclass",
    has_generation=False,
)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    subresources=_status(),
)
ROLE = Kind(
    "rbac.authorization.k8s.io", "v1", "Role", "roles", singular="role", has_generation=False
)
ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io",
    "v1",
    "RoleBinding",
    "rolebindings",
    singular="rolebinding",
    has_generation=False,
)
CLUSTER_ROLE = Kind(
    "rbac.authorization.k8s.io",
    "v1",
    "ClusterRole",
    "clusterroles",
    namespaced=False,
    singular="clusterrole",
    has_generation=False,
)
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io",
    "v1",
    "ClusterRoleBinding",
    "clusterrolebindings",
    namespaced=False,
    singular="clusterrolebinding",
    has_generation=False,
)
COSCHEDULING_POD_GROUP = Kind(
    "scheduling.x-k8s.io",
    "v1alpha1",
    "PodGroup",
    "podgroups",
    singular="podgroup",
    short_names=("pg", "pgs"),
    subresources=_status(),
)
VOLCANO_POD_GROUP = Kind(
    "scheduling.volcano.sh",
    "v1beta1",
    "PodGroup",
    "podgroups",
    singular="podgroup",
    short_names=("pg", "podgroup-v1beta1"),
    subresources=_status(),
)


def _review(group: str, kind: str) -> Kind:
    plural = f"{kind.lower()}s"
    return Kind(group, "v1", kind, plural, namespaced=False, singular=kind.lower())


TOKEN_REVIEW = _review("authentication.k8s.io", "TokenReview")
SELF_SUBJECT_REVIEW = _review("authentication.k8s.io", "SelfSubjectReview")
SELF_SUBJECT_ACCESS_REVIEW = _review("authorization.k8s.io", "SelfSubjectAccessReview")
SUBJECT_ACCESS_REVIEW = _review("authorization.k8s.io", "SubjectAccessReview")
SELF_SUBJECT_RULES_REVIEW = _review("authorization.k8s.io", "SelfSubjectRulesReview")

REVIEW_KINDS = (
    TOKEN_REVIEW,
    SELF_SUBJECT_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
)
"""Questions to an API server: created, answered, not stored."""

TRAINER_KINDS = (TRAINJOB, TRAINING_RUNTIME, CLUSTER_TRAINING_RUNTIME)

CUSTOM_KINDS = (*TRAINER_KINDS, JOBSET, COSCHEDULING_POD_GROUP, VOLCANO_POD_GROUP)
"""Kinds that a real cluster gets from a CRD; the embedded server has their CRDs from the start."""

BUILTIN_KINDS = (
    NAMESPACE, POD, SERVICE, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, NODE, EVENT, EVENT_V1,
    PERSISTENT_VOLUME_CLAIM, RESOURCE_QUOTA, LIMIT_RANGE, JOB, LEASE, PRIORITY_CLASS, RUNTIME_CLASS,
    CUSTOM_RESOURCE_DEFINITION, ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING,
)  # fmt: skip

KINDS = (*BUILTIN_KINDS, *CUSTOM_KINDS)
"""Every kind the embedded server serves from its first start."""

STORED_WITHOUT_EFFECT = (
    ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, RUNTIME_CLASS,
    COSCHEDULING_POD_GROUP, VOLCANO_POD_GROUP,
)  # fmt: skip
"""Kinds that are kept and served, but that nothing here acts on; a create answers with a warning."""

_BY_GROUP_VERSION_KIND = {(kind.api_version, kind.kind): kind for kind in KINDS}


def find_kind(api_version: str, kind: str) -> Kind | None:
    """The built-in kind with that apiVersion and kind, if we know it."""
    return _BY_GROUP_VERSION_KIND.get((api_version, kind))
