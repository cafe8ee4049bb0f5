"""What the API fills into pods and pod templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.objects import dig
from trainwright.merge.quantity import canonical_quantity, is_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import Json, Object, ObjectView

DEFAULT_FILE_MODE = 0o644
TOKEN_LIFETIME_S = 3600
NODE_LOSS_TOLERATION_S = 300
"""How long a pod stays bound to a node that is not ready or not reachable."""

_SPEC_DEFAULTS: Mapping[str, Json] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_CONTAINER_DEFAULTS: Mapping[str, Json] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE_DEFAULTS: Mapping[str, Json] = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_VOLUME_SOURCE_DEFAULTS: Mapping[str, Mapping[str, Json]] = {
    "configMap": {"defaultMode": DEFAULT_FILE_MODE},
    "secret": {"defaultMode": DEFAULT_FILE_MODE},
    "downwardAPI": {"defaultMode": DEFAULT_FILE_MODE},
    "projected": {"defaultMode": DEFAULT_FILE_MODE},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_NODE_LOSS_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def default_pod_template(template: ObjectView) -> Object:
    """A pod template (`metadata` and `spec`) with the defaults that templates get.

    Source: Kubernetes API defaults of PodTemplateSpec. Unlike pods, templates get no requests from
    limits and no enableServiceLinks.
    """
    return {**template, "spec": _default_spec(template.get("spec") or {}, is_pod=False)}


def default_pod_spec(spec: ObjectView) -> Object:
    """A pod's spec with the API's defaults, before admission plugins add theirs."""
    return _default_spec(spec, is_pod=True)


def add_admitted_parts(
    spec: ObjectView, *, priority: int, preemption_policy: str = "PreemptLowerPriority"
) -> Object:
    """What admission adds to a new pod: service account, priority and node-loss tolerations."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    return {
        **spec,
        "serviceAccountName": account,
        "serviceAccount": account,
        "priority": priority,
        "preemptionPolicy": preemption_policy,
        "tolerations": [*(spec.get("tolerations") or ()), *_missing_tolerations(spec)],
    }


def compute_qos_class(spec: ObjectView) -> str:
    """Guaranteed, Burstable or BestEffort, from the cpu and memory of all containers."""
    requests_seen = False
    guaranteed = True
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        requests = _computing(resources.get("requests"))
        limits = _computing(resources.get("limits"))
        requests_seen = requests_seen or bool(requests) or bool(limits)
        if len(limits) < 2 or {**limits, **requests} != limits:
            guaranteed = False
    if not requests_seen:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _computing(amounts: Mapping[str, Any] | None) -> dict[str, str]:
    kept = {}
    for name in ("cpu", "memory"):
        value = (amounts or {}).get(name)
        if value is not None and str(value).rstrip("mkKMGTPEinu") not in ("0", ""):
            kept[name] = str(value)
    return kept


def _default_spec(spec: ObjectView, *, is_pod: bool) -> Object:
    new: Object = {**_SPEC_DEFAULTS, **_present(spec)}
    new.setdefault("securityContext", {})
    if is_pod:
        new.setdefault("enableServiceLinks", True)
    if "serviceAccountName" in new or "serviceAccount" in new:
        account = new.get("serviceAccountName") or new["serviceAccount"]
        new["serviceAccountName"] = new["serviceAccount"] = account
    host_network = bool(new.get("hostNetwork"))
    for field in ("initContainers", "containers"):
        if new.get(field):
            new[field] = [
                default_container(container, is_pod=is_pod, host_network=host_network)
                for container in new[field]
            ]
    if new.get("volumes"):
        new["volumes"] = [default_volume(volume) for volume in new["volumes"]]
    return new


def default_container(
    container: ObjectView, *, is_pod: bool = True, host_network: bool = False
) -> Object:
    """One container with its defaults; requests follow limits in pods only."""
    new: Object = {**_CONTAINER_DEFAULTS, **_present(container)}
    new.setdefault("imagePullPolicy", default_pull_policy(str(new.get("image", ""))))
    resources = canonical_resources(new.get("resources") or {})
    if is_pod and resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    new["resources"] = resources
    if new.get("ports"):
        new["ports"] = [_default_port(port, host_network=host_network) for port in new["ports"]]
    if new.get("env"):
        new["env"] = [_default_env(variable) for variable in new["env"]]
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if new.get(field) is not None:
            new[field] = {**_PROBE_DEFAULTS, **_default_handler(new[field])}
    if new.get("lifecycle"):
        new["lifecycle"] = {
            name: _default_handler(hook) if isinstance(hook, dict) else hook
            for name, hook in new["lifecycle"].items()
        }
    return new


def canonical_resources(resources: ObjectView) -> Object:
    """The resources with amounts as the API stores them: `0.5` and 1 become `"500m"` and `"1"`.

    An amount that is none stays as it is, for validation to name.
    """
    new = dict(resources)
    for side in ("limits", "requests"):
        if isinstance(new.get(side), dict):
            new[side] = {
                name: canonical_quantity(amount) if is_quantity(amount) else amount
                for name, amount in new[side].items()
            }
    return new


def default_pull_policy(image: str) -> str:
    """Always for `:latest` and images without tag or digest, else IfNotPresent."""
    name, at, _ = image.partition("@")
    if at:
        return "IfNotPresent"
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def default_volume(volume: ObjectView) -> Object:
    """One volume with its source's defaults; without a source it is an emptyDir."""
    new = dict(_present(volume))
    if len(new) <= 1 and "name" in new:
        new["emptyDir"] = {}
    for source, defaults in _VOLUME_SOURCE_DEFAULTS.items():
        if isinstance(new.get(source), dict):
            new[source] = {**defaults, **_present(new[source])}
    if isinstance(dig(new, "downwardAPI", "items"), list):
        new["downwardAPI"]["items"] = [_default_item(i) for i in new["downwardAPI"]["items"]]
    if isinstance(dig(new, "projected", "sources"), list):
        new["projected"]["sources"] = [_default_source(s) for s in new["projected"]["sources"]]
    if isinstance(dig(new, "ephemeral", "volumeClaimTemplate", "spec"), dict):
        claim = new["ephemeral"]["volumeClaimTemplate"]
        new["ephemeral"] = {
            "volumeClaimTemplate": {**claim, "spec": {"volumeMode": "Filesystem", **claim["spec"]}}
        }
    return new


def _default_source(source: ObjectView) -> Object:
    new = dict(source)
    if isinstance(new.get("serviceAccountToken"), dict):
        token = new["serviceAccountToken"]
        new["serviceAccountToken"] = {"expirationSeconds": TOKEN_LIFETIME_S, **token}
    if isinstance(dig(new, "downwardAPI", "items"), list):
        items = [_default_item(item) for item in new["downwardAPI"]["items"]]
        new["downwardAPI"] = {**new["downwardAPI"], "items": items}
    return new


def _default_item(item: ObjectView) -> Object:
    return _with_field_ref(item, item)


def _default_env(variable: ObjectView) -> Object:
    source = variable.get("valueFrom")
    if not isinstance(source, dict):
        return dict(variable)
    return {**variable, "valueFrom": _with_field_ref(source, source)}


def _with_field_ref(holder: ObjectView, source: ObjectView) -> Object:
    new = dict(holder)
    if isinstance(source.get("fieldRef"), dict):
        new["fieldRef"] = {"apiVersion": "v1", **source["fieldRef"]}
    if isinstance(source.get("resourceFieldRef"), dict):
        new["resourceFieldRef"] = {"divisor": "0", **source["resourceFieldRef"]}
    return new


def _default_port(port: ObjectView, *, host_network: bool) -> Object:
    new: Object = {"protocol": "TCP", **_present(port)}
    if host_network and "containerPort" in new:
        new.setdefault("hostPort", new["containerPort"])
    return new


def _default_handler(handler: ObjectView) -> Object:
    new = dict(_present(handler))
    if isinstance(new.get("httpGet"), dict):
        new["httpGet"] = {"path": "/", "scheme": "HTTP", **_present(new["httpGet"])}
    if isinstance(new.get("grpc"), dict):
        new["grpc"] = {"service": "", **_present(new["grpc"])}
    return new


def _missing_tolerations(spec: ObjectView) -> list[Object]:
    present = spec.get("tolerations") or ()
    return [
        {
            "key": taint,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": NODE_LOSS_TOLERATION_S,
        }
        for taint in _NODE_LOSS_TAINTS
        if not any(_tolerates(toleration, taint) for toleration in present)
    ]


def _tolerates(toleration: ObjectView, taint: str) -> bool:
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (
        None,
        "",
        "NoExecute",
    )


def _present(value: ObjectView) -> Mapping[str, Json]:
    if None in value.values():
        return {name: item for name, item in value.items() if item is not None}
    return value
