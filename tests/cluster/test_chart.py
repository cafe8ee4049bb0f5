"""The chart: what it renders is right in itself, and its rights are those that the parts really use."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.request
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.api_lane import make_api_lane
from tests.cluster.chart import CHART, NAMESPACE, render_chart, run_helm, template
from tests.cluster.processes import find_free_ports, running, wait_ready
from tests.component.manager.conftest import TRAINWRIGHT
from tests.support.planes import make_runtime, make_trainjob, wait_until
from trainwright.api.kinds import find_kind
from trainwright.api.schemas.registry import schema_of
from trainwright.base.objects import dig, is_condition_true
from trainwright.core.configuration.parse import parse_configuration
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.schema.validation import find_schema_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tests.cluster.api_lane import ApiLane
    from trainwright.base.objects import Object

pytestmark = pytest.mark.timeout(300)

REPORTS = {"manager": {"config": {"featureGates": {"TrainJobStatus": True}}}}
EVERYTHING: Mapping[str, Any] = {
    "manager": {
        "replicas": 2,
        "config": {
            "featureGates": {"TrainJobStatus": True},
            "metrics": {"auth": {"enabled": True}},
            "tls": {"minVersion": "1.3"},
        },
        "selectorLabels": {"team": "ml"},
        "tolerations": [{"operator": "Exists"}],
    },
    "commonLabels": {"cost-centre": "7"},
    "runtimes": {"defaultEnabled": True},
    **{
        name: {"enabled": True}
        for name in ("networkPolicy", "serviceMonitor", "prometheusRule", "dashboard")
    },
}
BARE: Mapping[str, Any] = {
    "fullnameOverride": "kubeflow-trainer",
    "podDisruptionBudget": {"enabled": False},
    "manager": {
        "config": {
            "certManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
            "metrics": {"bindAddress": "0"},
        }
    },
}
UPSTREAM: Mapping[str, Any] = {
    "jobset": {"install": False, "fullnameOverride": "jobset"},
    "dataCache": {"enabled": False, "lws": {"install": True}},
    "image": {"registry": "ghcr.io", "repository": "a/b", "tag": "x", "pullSecrets": []},
    "manager": {"config": {"webhook": {"port": 9555}, "statusServer": {"qps": 5, "burst": 10}}},
    "runtimes": {
        "torchDistributed": {"enabled": True},
        "deepspeedDistributed": {"enabled": False, "image": {"tag": "x"}},
        "torchtuneDistributed": {"llama3_2_1B": {"enabled": False}},
        "installer": {"image": {"tag": "3"}},
    },
}
WEBHOOK_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
SETS = {"defaults": {}, "everything": EVERYTHING, "bare": BARE, "upstream": UPSTREAM}


@pytest.fixture(params=sorted(SETS))
def values(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    return SETS[request.param]


def of_kind(objects: Iterable[Object], *kinds: str) -> list[Object]:
    return [obj for obj in objects if obj["kind"] in kinds]


def test_helm_finds_nothing_to_say() -> None:
    done = run_helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_object_is_whole(values: Mapping[str, Any]) -> None:
    objects = render_chart(values, "--include-crds")
    names = [(obj["kind"], obj["metadata"]["name"]) for obj in objects]
    assert len(names) == len(set(names))
    for obj in objects:
        kind = find_kind(obj["apiVersion"], obj["kind"])
        schema = schema_of(kind) if kind else None
        if schema is not None and obj["kind"] != "CustomResourceDefinition":
            assert find_schema_errors(schema, obj) == [], obj["metadata"]["name"]
    assert not parse_configuration(read_configuration(objects), "").warnings
    parts = {part for deployment in of_kind(objects, "Deployment") for part in serves(deployment)}
    assert parts == {"reconcile", "webhooks"} | ({"status"} if values is EVERYTHING else set())


def serves(deployment: Object) -> list[str]:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [a.removeprefix("--serve=") for a in container["args"] if a.startswith("--serve=")]


def test_pods_have_no_rights_on_their_node(values: Mapping[str, Any]) -> None:
    for deployment in of_kind(render_chart(values), "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            }
            assert container["resources"]["requests"]
            assert container["resources"]["limits"]["memory"]


def test_selectors_find_what_they_mean(values: Mapping[str, Any]) -> None:
    objects = render_chart(values)
    templates = [d["spec"]["template"] for d in of_kind(objects, "Deployment")]
    for obj in of_kind(objects, "Deployment", "PodDisruptionBudget"):
        assert len(find_selected(templates, obj["spec"]["selector"]["matchLabels"])) == 1
    for service in of_kind(objects, "Service"):
        found = find_selected(templates, service["spec"]["selector"])
        for port in service["spec"]["ports"]:
            having = [
                template
                for template in found
                for there in template["spec"]["containers"][0]["ports"]
                if there["name"] == port["targetPort"]
            ]
            assert having
            assert len(having) == (len(found) if port["name"] == "metrics" else 1)
    for policy in of_kind(objects, "NetworkPolicy"):
        assert len(find_selected(templates, policy["spec"]["podSelector"]["matchLabels"])) == len(
            templates
        )
    for monitor in of_kind(objects, "ServiceMonitor"):
        labels = monitor["spec"]["selector"]["matchLabels"]
        assert (
            len(
                [
                    s
                    for s in of_kind(objects, "Service")
                    if labels.items() <= s["metadata"]["labels"].items()
                ]
            )
            == 1
        )
    services = {s["metadata"]["name"] for s in of_kind(objects, "Service")}
    for configuration in of_kind(objects, *WEBHOOK_KINDS):
        for hook in configuration["webhooks"]:
            assert hook["clientConfig"]["service"]["name"] in services
            assert hook["clientConfig"]["service"]["namespace"] == NAMESPACE
    accounts = {a["metadata"]["name"] for a in of_kind(objects, "ServiceAccount")}
    assert {t["spec"]["serviceAccountName"] for t in templates} == accounts


def find_selected(templates: list[Object], selector: Mapping[str, str]) -> list[Object]:
    return [t for t in templates if selector.items() <= t["metadata"]["labels"].items()]


def test_no_secret_but_its_own_can_be_read(values: Mapping[str, Any]) -> None:
    objects = render_chart(values)
    for role in of_kind(objects, "ClusterRole", "Role"):
        for rule in role["rules"]:
            assert not {"*"} & {*rule["resources"], *rule["verbs"], *rule["apiGroups"]}
            if "secrets" in rule["resources"] and rule["verbs"] != ["create"]:
                assert role["kind"] == "Role"
                assert len(rule["resourceNames"]) == 1


def test_runtimes_are_there_when_they_are_asked_for() -> None:
    shipped = {runtime["metadata"]["name"] for runtime in load_shipped_runtimes()}
    assert names_of_runtimes({}) == set()
    assert names_of_runtimes({"defaultEnabled": True}) == shipped
    one = {"defaultEnabled": True, "torchDistributed": {"enabled": False}}
    assert names_of_runtimes(one) == shipped - {"torch-distributed"}


def names_of_runtimes(values: Mapping[str, Any]) -> set[str]:
    found = of_kind(render_chart({"runtimes": values}), "ClusterTrainingRuntime")
    assert all(
        r["metadata"]["labels"]["trainer.kubeflow.org/webhook-validation"] == "disabled"
        for r in found
    )
    return {runtime["metadata"]["name"] for runtime in found}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"manager": {"replicas": "two"}}, "got string, want integer"),
        ({"manager": {"replica": 2}}, "'replica' not allowed"),
        ({"webhook": {"failurePolicy": "Maybe"}}, "must be one of 'Fail', 'Ignore'"),
        ({"dataCache": {"enabled": True}}, "value must be false"),
        ({"jobset": {"install": True}}, "JobSet is not part of this chart"),
        ({"crds": {"enabled": False}}, "--skip-crds"),
        ({"runtimes": {"t": {"x": {"enabled": True}}}}, "runtimes.t: no such runtime is shipped"),
    ],
)  # fmt: skip
def test_what_it_cannot_follow_is_refused(values: Mapping[str, Any], said: str) -> None:
    done = template(values)
    assert done.returncode != 0
    assert said in done.stderr


TRAINER_RESOURCES = ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
UNUSED = {
    (
        "controller",
        "trainjobs/finalizers",
        "update",
    ): "only asked where owner references are checked",
    (
        "controller",
        "configmaps",
        "create",
    ): "a patch that creates needs it, and is recorded as a patch",
    ("controller", "jobsets", "create"): "as above",
    ("controller", "secrets", "create"): "keys of MPI jobs",
    ("controller", "trainingruntimes", "get"): "the job here names a runtime of the cluster",
    ("controller", "trainingruntimes", "patch"): "finalizers of older Trainers",
    ("controller", "clustertrainingruntimes", "patch"): "as above",
    **{
        ("controller", kind, "list"): "where a watch cannot begin with what is there"
        for kind in (*TRAINER_RESOURCES, "jobsets", "configmaps")
    },
    ("controller", "events", "patch"): "an event that comes again",
    ("webhooks", "jobsets", "get"): "when the patches of a job change",
    ("webhooks", "trainingruntimes", "get"): "the job here names a runtime of the cluster",
}
"""Rights that the scene below does not need, and why they are there."""
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]}],
}


@pytest.fixture
def own_lane(tmp_path: Path) -> Iterator[ApiLane]:
    """A control plane that writes down who asks for what."""
    with make_api_lane(tmp_path / "lane", "kube-controller-manager", "jobset") as lane:
        (tmp_path / "policy.yaml").write_text(yaml.safe_dump(AUDIT))
        lane.stop("kube-apiserver")
        lane.start(
            "kube-apiserver",
            *lane.commands["kube-apiserver"],
            f"--audit-policy-file={tmp_path / 'policy.yaml'}",
            f"--audit-log-path={tmp_path / 'audit.log'}",
        )
        lane.wait_api()
        yield lane


@pytest.fixture
def ports(own_lane: ApiLane, tmp_path: Path) -> Iterator[Mapping[str, int]]:
    """The Deployments as processes, each with the token of its own ServiceAccount; where they listen."""
    objects = render_chart(REPORTS)
    own_lane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    wanted = [o for o in objects if o["kind"] not in {"Deployment", "PodDisruptionBudget"}]
    for configuration in of_kind(wanted, *WEBHOOK_KINDS):
        for hook in configuration["webhooks"]:
            # There is no Service here that would lead to them.
            hook["namespaceSelector"] = {"matchLabels": {"there": "is-none"}}
            hook["failurePolicy"] = "Ignore"
    own_lane.apply(*wanted)
    (tmp_path / "certs").mkdir()
    with ExitStack() as stack:
        ports = {
            deployment["metadata"]["labels"]["app.kubernetes.io/component"]: stack.enter_context(
                run_as_account(own_lane, tmp_path, deployment, read_configuration(objects))
            )
            for deployment in of_kind(objects, "Deployment")
        }
        # What the mounted Secret is in a Pod.
        secret = own_lane.get("secret", "trainwright-webhook-cert", "-n", NAMESPACE)
        (tmp_path / "certs" / "ca.crt").write_bytes(base64.b64decode(secret["data"]["ca.crt"]))
        yield ports


def read_configuration(objects: list[Object]) -> dict[str, Any]:
    (config,) = (
        obj for obj in of_kind(objects, "ConfigMap") if obj["metadata"]["name"].endswith("-config")
    )
    found: dict[str, Any] = yaml.safe_load(config["data"]["controller_manager_config.yaml"])
    return found


@contextmanager
def run_as_account(
    lane: ApiLane, folder: Path, deployment: Object, configuration: dict[str, Any]
) -> Iterator[int]:
    """One Deployment's command, with what it may do there; its port."""
    port, health = find_free_ports(2)
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    (part,) = serves(deployment)
    token = lane.kubectl("create", "token", account, "-n", NAMESPACE).strip()
    lane.write_kubeconfig(folder / f"{part}.kubeconfig", token)
    config = folder / f"{part}.yaml"
    where = {
        "webhook": {"host": "127.0.0.1", "port": port},
        "statusServer": {"port": port},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
    }
    config.write_text(yaml.safe_dump(configuration | where))
    command = [
        *(str(TRAINWRIGHT), "controller", "--serve", part, "--config", str(config)),
        *("--kubeconfig", str(folder / f"{part}.kubeconfig"), "--cert-dir", str(folder / "certs")),
        "--status-host=127.0.0.1",
    ]
    log = folder / f"{part}.log"
    with running(command, log) as process:
        wait_ready(lambda: lane.probe(f"http://127.0.0.1:{health}/readyz"), process, log, part)
        yield port
        process.terminate()
        assert process.wait(60) == 0, log.read_text()


def test_the_rights_are_those_that_are_used(
    own_lane: ApiLane, ports: Mapping[str, int], tmp_path: Path
) -> None:
    lane = own_lane
    lane.apply(make_runtime("plain"))
    job = make_trainjob("t", ["true"], runtime="plain", nodes=2)
    job["metadata"]["namespace"] = "default"
    late = json.loads(json.dumps(job))
    late["metadata"]["name"] = "late"
    late["spec"]["activeDeadlineSeconds"] = 1
    lost = json.loads(json.dumps(job))
    lost["metadata"]["name"] = "lost"
    lost["spec"]["runtimeRef"]["name"] = "nowhere"
    lane.apply(job, late, lost)
    wait_until(lambda: len(pods_of(lane, "t")) == 2, "two Pods")
    assert post_progress(lane, ports["status"], pods_of(lane, "t")[0]) == 200
    wait_until(lambda: lane.get("trainjob", "t")["status"].get("trainerStatus"), "the progress")
    assert review(ports["webhooks"], lane.get("trainjob", "t"), "UPDATE") == (True, "")
    assert review(ports["webhooks"], late, "CREATE") == (True, "")
    wait_until(lambda: finish_pods(lane, "t"), "Complete")
    wait_until(lambda: is_condition_true(lane.get("trainjob", "late"), "Failed"), "too late")
    for kind in WEBHOOK_KINDS:
        (found,) = (c for c in lane.get(kind)["items"] if "trainer" in c["metadata"]["name"])
        assert all(hook["clientConfig"]["caBundle"] for hook in found["webhooks"])

    used = read_audit(tmp_path / "audit.log")
    granted = read_rights(render_chart(REPORTS))
    assert used <= granted
    assert granted - used <= UNUSED.keys()


def pods_of(lane: ApiLane, job: str) -> list[Object]:
    selector = f"jobset.sigs.k8s.io/jobset-name={job}"
    items: list[Object] = lane.get("pods", "", "-l", selector)["items"]
    return items


def finish_pods(lane: ApiLane, job: str) -> bool:
    for pod in pods_of(lane, job):
        if dig(pod, "status", "phase") != "Succeeded":
            lane.kubectl(
                *("patch", "pod", pod["metadata"]["name"], "--subresource=status"),
                *("--type=merge", "-p", '{"status": {"phase": "Succeeded"}}'),
            )
    return is_condition_true(lane.get("trainjob", job), "Complete")


def ask(url: str, body: Any, token: str = "") -> tuple[int, bytes]:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # it is of the Service's name
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20, context=context) as answer:
        return answer.status, answer.read()


def post_progress(lane: ApiLane, port: int, pod: Object) -> int:
    path = "trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/t/status"
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod['metadata']['name']}")
    token = lane.kubectl("create", "token", "default", f"--audience={path}", *bound).strip()
    status = {"lastUpdatedTime": "2026-01-01T00:00:00Z", "progressPercentage": 40}
    return ask(f"https://127.0.0.1:{port}/apis/{path}", {"trainerStatus": status}, token)[0]


def review(port: int, job: Object, operation: str) -> tuple[bool, str]:
    """What the validating webhook of TrainJobs says."""
    gvk = {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"}
    request = {
        "uid": "u",
        "kind": gvk,
        "resource": {**gvk, "kind": None, "resource": "trainjobs"},
        "namespace": "default",
        "name": job["metadata"]["name"],
        "operation": operation,
        "object": job,
        "oldObject": job if operation == "UPDATE" else None,
        "userInfo": {},
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    path = "validate-trainer-kubeflow-org-v1alpha1-trainjob"
    _, text = ask(f"https://127.0.0.1:{port}/{path}", body)
    said = json.loads(text)["response"]
    return said["allowed"], dig(said, "status", "message", default="")


def read_audit(log: Path) -> set[tuple[str, str, str]]:
    """What each account asked for: component, resource, verb; all of it was allowed."""
    used = set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        assert event["annotations"]["authorization.k8s.io/decision"] == "allow", line
        if "objectRef" not in event:
            continue
        where = event["objectRef"]
        resource = "/".join(filter(None, (where["resource"], where.get("subresource"))))
        account = event["user"]["username"].rpartition(":")[2]
        used.add((account.rpartition("-")[2], resource, event["verb"]))
    return used


def read_rights(objects: list[Object]) -> set[tuple[str, str, str]]:
    """What the roles of the chart allow, in the same words."""
    roles = {
        (role["kind"], role["metadata"]["name"]): role["rules"]
        for role in of_kind(objects, "Role", "ClusterRole")
    }
    return {
        (subject["name"].rpartition("-")[2], resource, verb)
        for binding in of_kind(objects, "RoleBinding", "ClusterRoleBinding")
        for subject in binding["subjects"]
        if subject["kind"] == "ServiceAccount"
        for rule in roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
