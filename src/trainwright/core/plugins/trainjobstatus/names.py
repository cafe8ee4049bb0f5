"""Names of the progress protocol inside a pod."""

from __future__ import annotations

from trainwright.api.kinds import TRAINJOB

SERVER_URL = "KUBEFLOW_TRAINER_SERVER_URL"
SERVER_CA = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
SERVER_TOKEN = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - a name of a variable

VOLUME = "kubeflow-trainer-token"
FOLDER = "/var/run/secrets/kubeflow/trainer"
CA_FILE = "ca.crt"
TOKEN_FILE = "token"  # noqa: S105 - a name of a file
TOKEN_LIFETIME_S = 3600
CONFIG_MAP_SUFFIX = "-tls-config"


def status_audience(namespace: str, name: str) -> str:
    """The audience that a token for a TrainJob's progress must have."""
    return f"{TRAINJOB.api_version}/namespaces/{namespace}/trainjobs/{name}/status"


def status_path(namespace: str, name: str) -> str:
    """Where a TrainJob's progress is posted to."""
    return f"/apis/{status_audience(namespace, name)}"
