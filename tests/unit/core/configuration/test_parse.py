from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.base.errors import InvalidObject
from trainwright.core.configuration.fields import parse_go_duration
from trainwright.core.configuration.gates import parse_gates, resolve_gates
from trainwright.core.configuration.parse import parse_configuration, split_address
from trainwright.core.configuration.settings import Configuration

HEAD = {"apiVersion": "config.trainer.kubeflow.org/v1alpha1", "kind": "Configuration"}

SHIPPED = """
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
webhook: {port: 9443, host: ""}
metrics: {bindAddress: ":8443", secureServing: true}
health:
  healthProbeBindAddress: ":8081"
  readinessEndpointName: readyz
  livenessEndpointName: healthz
leaderElection:
  leaderElect: true
  resourceName: trainer.kubeflow.org
  resourceNamespace: ""
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
controller:
  groupKindConcurrency:
    TrainJob.trainer.kubeflow.org: 5
    TrainingRuntime.trainer.kubeflow.org: 1
    ClusterTrainingRuntime.trainer.kubeflow.org: 1
certManagement:
  enable: true
  webhookServiceName: kubeflow-trainer-controller-manager
  webhookSecretName: kubeflow-trainer-webhook-cert
clientConnection: {qps: 50, burst: 100}
statusServer: {port: 10443, qps: 5, burst: 10}
featureGates: {}
"""


def read(**fields: Any) -> Configuration:
    return parse_configuration(HEAD | fields, "file").configuration


def findings(**fields: Any) -> list[str]:
    with pytest.raises(InvalidObject) as caught:
        parse_configuration(HEAD | fields, "file")
    return [str(error) for error in caught.value.errors]


def test_a_file_that_says_nothing_means_the_defaults() -> None:
    assert read() == Configuration()
    assert read(webhook=None, metrics={}, tls={"cipherSuites": None}) == Configuration()


def test_the_shipped_file_is_the_defaults_with_leader_election() -> None:
    found = parse_configuration(yaml.safe_load(SHIPPED), "file")
    assert found.warnings == []
    election = found.configuration.leader_election
    assert (election.enabled, election.name) == (True, "trainer.kubeflow.org")
    assert found.configuration.concurrency["TrainJob.trainer.kubeflow.org"] == 5
    assert found.configuration.metrics == Configuration().metrics
    assert found.configuration.client == Configuration().client


def test_every_field_is_read() -> None:
    found = read(
        webhook={"port": 1, "host": "10.0.0.1"},
        metrics={"bindAddress": "127.0.0.1:1", "auth": {"enabled": True}},
        health={
            "healthProbeBindAddress": "[::1]:2",
            "readinessEndpointName": "/ready",
            "livenessEndpointName": "live",
        },
        leaderElection={"leaderElect": True, "resourceName": "x", "resourceNamespace": "ns"},
        certManagement={"enable": False, "webhookServiceName": "s", "webhookSecretName": "k"},
        clientConnection={"qps": 0.5, "burst": 3},
        statusServer={"port": 7, "qps": 0, "burst": 0},
        featureGates={"TrainJobStatus": True},
        tls={
            "minVersion": "1.3",
            "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            "nextProtos": ["http/1.1"],
        },
    )
    assert (found.webhook.port, found.webhook.host) == (1, "10.0.0.1")
    assert (found.metrics.bind_address, found.metrics.auth) == ("127.0.0.1:1", True)
    assert (found.health.readiness_name, found.health.liveness_name) == ("ready", "live")
    assert (found.leader_election.name, found.leader_election.lease_duration_s) == ("x", 15.0)
    assert (found.certificates.manage, found.certificates.secret_name) == (False, "k")
    assert (found.client.qps, found.client.burst) == (0.5, 3)
    assert (found.status_server.port, found.status_server.qps) == (7, 0.0)
    assert found.gates == {"TrainJobStatus": True}
    assert found.tls.ciphers == ("ECDHE-RSA-AES128-GCM-SHA256",)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "Config"}, 'kind: Invalid value: "Config": must be Configuration'),
        ({"apiVersion": "v1"}, "apiVersion"),
        (
            {"webhooks": {}},
            'webhooks: Invalid value: "webhooks": unknown field; did you mean "webhook"',
        ),
        ({"metrics": {"bindAddres": ":1"}}, "metrics.bindAddres: "),
        ({"metrics": {"auth": {"enable": True}}}, "metrics.auth.enable: "),
        ({"metrics": []}, "metrics: Invalid value: []: must be a map"),
        ({"webhook": {"port": 0}}, "webhook.port: Invalid value: 0: must be between 1 and 65535"),
        ({"webhook": {"port": "9443"}}, "webhook.port: "),
        ({"webhook": {"port": True}}, "webhook.port: "),
        ({"webhook": {"host": "a" * 254}}, "webhook.host: Too long"),
        ({"metrics": {"bindAddress": "8443"}}, "metrics.bindAddress: "),
        ({"metrics": {"bindAddress": ":99999"}}, "metrics.bindAddress: "),
        (
            {"metrics": {"secureServing": False, "auth": {"enabled": True}}},
            "metrics.auth.enabled: Invalid value: true: needs metrics.secureServing",
        ),
        ({"health": {"readinessEndpointName": "a b"}}, "health.readinessEndpointName: "),
        ({"health": {"livenessEndpointName": "readyz"}}, "health.livenessEndpointName: "),
        ({"leaderElection": {"leaseDuration": "15"}}, "leaderElection.leaseDuration: "),
        ({"leaderElection": {"leaseDuration": 15}}, "leaderElection.leaseDuration: "),
        ({"leaderElection": {"leaseDuration": "9s"}}, "must be longer than renewDeadline"),
        ({"leaderElection": {"retryPeriod": "9s"}}, "leaderElection.renewDeadline: "),
        ({"leaderElection": {"resourceLock": "endpoints"}}, "leaderElection.resourceLock: "),
        ({"leaderElection": {"resourceName": "A_b"}}, "leaderElection.resourceName: "),
        (
            {"controller": {"groupKindConcurrency": {"TrainJob": 5}}},
            "controller.groupKindConcurrency.TrainJob: Unsupported value: 5: no kind of ours",
        ),
        (
            {"controller": {"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": 0}}},
            "controller.groupKindConcurrency.TrainJob.trainer.kubeflow.org: ",
        ),
        ({"clientConnection": {"qps": -1}}, "clientConnection.qps: "),
        ({"clientConnection": {"burst": 1.5}}, "clientConnection.burst: "),
        ({"certManagement": {"webhookSecretName": "No"}}, "certManagement.webhookSecretName: "),
        ({"statusServer": {"port": 65536}}, "statusServer.port: "),
        ({"featureGates": {"Warp": True}}, "featureGates.Warp: Unsupported value"),
        ({"featureGates": {"TrainJobStatus": "yes"}}, "featureGates.TrainJobStatus: "),
        ({"tls": {"nextProtos": ["h2"]}}, "tls.nextProtos: "),
        ({"tls": {"cipherSuites": [1]}}, "tls.cipherSuites: "),
    ],
)
def test_what_is_wrong_is_named_with_its_path(fields: dict[str, Any], said: str) -> None:
    assert [text for text in findings(**fields) if said in text]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert len(findings(webhook={"port": 0}, statusServer={"qps": -1}, bogus=1)) == 3


@pytest.mark.parametrize("document", [None, [], "text"])
def test_a_document_of_another_shape_is_refused(document: Any) -> None:
    with pytest.raises(InvalidObject, match="a map of kind Configuration was wanted"):
        parse_configuration(document, "file")


def test_odd_tls_settings_are_warned_of() -> None:
    tls = {
        "minVersion": "2.0",
        "cipherSuites": ["NONE", "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_AES_128_GCM_SHA256"],
        "nextProtos": ["h2", "http/1.1"],
    }
    found = parse_configuration(HEAD | {"tls": tls}, "file")
    assert len(found.warnings) == 4
    assert found.configuration.tls.min_version == ""
    assert found.configuration.tls.ciphers == ("AES128-SHA",)
    assert found.configuration.tls.next_protocols == ("http/1.1",)


def test_the_command_line_wins_over_the_file() -> None:
    in_file = {"featureGates": {"TrainJobStatus": True}}
    found = parse_configuration(HEAD | in_file, "file", parse_gates("TrainJobStatus=f"))
    assert found.configuration.gates == {"TrainJobStatus": False}


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("", False),
        ("AllAlpha=true", True),
        ("AllAlpha=true,TrainJobStatus=0", False),
        (" TrainJobStatus = T , AllBeta=true", True),
    ],
)
def test_gates(text: str, on: bool) -> None:
    assert resolve_gates(parse_gates(text))["TrainJobStatus"] is on


@pytest.mark.parametrize("text", ["Warp=true", "TrainJobStatus", "TrainJobStatus=yes"])
def test_gates_that_are_refused(text: str) -> None:
    with pytest.raises(InvalidObject, match="--feature-gates"):
        parse_gates(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15s", 15.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("100ms", 0.1), ("-2s", -2.0), ("0", 0.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "15", "s", "1d", "1s ", "1 s", "--1s", "1s1"])
def test_texts_that_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        parse_go_duration(text)


@pytest.mark.parametrize(
    ("address", "split"),
    [
        (":8443", ("", 8443)),
        ("h:1", ("h", 1)),
        ("[::1]:2", ("::1", 2)),
        ("1.2.3.4:0", ("1.2.3.4", 0)),
    ],
)
def test_addresses(address: str, split: tuple[str, int]) -> None:
    assert split_address(address) == split


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)
SECTIONS = (
    "webhook", "metrics", "health", "leaderElection", "controller", "certManagement",
    "clientConnection", "statusServer", "featureGates", "tls",
)  # fmt: skip


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.sampled_from(SECTIONS), JSON)
def test_no_content_breaks_the_reader(section: str, content: Any) -> None:
    found: InvalidObject | None = None
    try:
        parse_configuration(HEAD | {section: content}, "file")
    except InvalidObject as error:
        found = error
    assert found is None or all(finding.path.startswith(section) for finding in found.errors)
