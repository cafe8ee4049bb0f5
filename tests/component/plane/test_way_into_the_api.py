"""What a cluster's Pods find: the API server, and who they are to it."""

from __future__ import annotations

import pytest

from tests.support.planes import TestPlane, make_trainjob

PROGRAM = """
import json, os, ssl, urllib.request
folder = '/var/run/secrets/kubernetes.io/serviceaccount/'
token = open(folder + 'token').read()
host, port = os.environ['KUBERNETES_SERVICE_HOST'], os.environ['KUBERNETES_SERVICE_PORT']
path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
request = urllib.request.Request(
    f'https://{host}:{port}{path}',
    json.dumps({'apiVersion': 'authentication.k8s.io/v1', 'kind': 'SelfSubjectReview'}).encode(),
    {'Authorization': f'Bearer {token}', 'Content-Type': 'application/json'},
)
trust = ssl.create_default_context(cafile=folder + 'ca.crt')
with urllib.request.urlopen(request, context=trust) as answer:
    print(json.load(answer)['status']['userInfo']['username'])
"""


def test_a_pod_is_its_service_account_to_the_api(plane: TestPlane) -> None:
    if plane.record.isolation != "mounts":
        pytest.skip("mounts of a Pod's own are not allowed here")
    plane.apply(make_trainjob("who", ["python", "-c", PROGRAM]))
    plane.cli("wait", "who")
    assert "system:serviceaccount:default:default" in plane.cli("logs", "who")
