"""kubectl as users have it, against the embedded server over TLS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.serving import TestServer, running_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: demo}}
data: {colour: %s}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wd]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer, description: How large it is.}}
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[TestServer]:
    async with running_server(tmp_path) as running:
        yield running


async def test_apply_on_the_clients_side(server: TestServer) -> None:
    applied = [
        (await server.kubectl("apply", "-f", "-", stdin=CONFIG_MAP % colour)).out.split()[-1]
        for colour in ("red", "blue", "blue")
    ]
    assert applied == ["created", "configured", "unchanged"]
    found = await server.kubectl("get", "configmap", "settings", "-o", "jsonpath={.data}")
    assert json.loads(found.out) == {"colour": "blue"}
    table = await server.kubectl("get", "cm", "-l", "app=demo", "--no-headers")
    assert table.out.split()[:2] == ["settings", "1"]


async def test_apply_takes_single_entries_out_of_keyed_lists(server: TestServer) -> None:
    service = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: None, ports: [%s]}"
    )
    one, two = "{name: a, port: 1}", "{name: b, port: 2}"
    await server.kubectl("apply", "-f", "-", stdin=service % f"{one}, {two}")
    add = '{"spec":{"ports":[{"name":"c","port":3}]}}'
    await server.kubectl("patch", "service", "s", "-p", add)
    await server.kubectl("apply", "-f", "-", stdin=service % one)
    ports = await server.kubectl("get", "service", "s", "-o", "jsonpath={.spec.ports[*].name}")
    assert sorted(ports.out.split()) == ["a", "c"]


async def test_apply_on_the_servers_side_reports_conflicts(server: TestServer) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    await server.kubectl(*apply, stdin=CONFIG_MAP % "red")
    other = await server.try_kubectl(*apply, "--field-manager=other", stdin=CONFIG_MAP % "blue")
    assert other.code == 1
    assert 'conflict with "kubectl"' in other.err
    forced = (*apply, "--field-manager=other", "--force-conflicts")
    await server.kubectl(*forced, stdin=CONFIG_MAP % "blue")


async def test_patch_label_and_edit(server: TestServer) -> None:
    await server.kubectl("create", "-f", "-", stdin=CONFIG_MAP % "red")
    await server.kubectl("label", "cm/settings", "tier=low")
    await server.kubectl("annotate", "cm/settings", "note=here")
    await server.kubectl("patch", "cm/settings", "-p", '{"data":{"a":"1","b":"2"}}')
    await server.kubectl("patch", "cm/settings", "--type=merge", "-p", '{"data":{"a":null}}')
    add = '[{"op":"add","path":"/data/c","value":"3"}]'
    await server.kubectl("patch", "cm/settings", "--type=json", "-p", add)
    await server.kubectl("edit", "cm/settings", KUBE_EDITOR="sed -i s/red/green/")
    found = json.loads((await server.kubectl("get", "cm/settings", "-o", "json")).out)
    assert found["data"] == {"colour": "green", "b": "2", "c": "3"}
    assert found["metadata"]["labels"] == {"app": "demo", "tier": "low"}
    assert found["metadata"]["annotations"] == {"note": "here"}


async def test_unknown_fields_are_refused_and_dry_runs_keep_nothing(server: TestServer) -> None:
    wrong = CONFIG_MAP % "red" + "colour: red\n"
    refused = await server.try_kubectl("apply", "-f", "-", stdin=wrong)
    assert refused.code == 1
    assert 'unknown field "colour"' in refused.err
    dry = ("create", "-f", "-", "--dry-run=server", "-o", "name")
    assert (await server.kubectl(*dry, stdin=CONFIG_MAP % "red")).out == "configmap/settings\n"
    gone = await server.try_kubectl("get", "cm", "settings")
    assert 'configmaps "settings" not found' in gone.err


async def test_delete_and_wait(server: TestServer) -> None:
    await server.kubectl("create", "-f", "-", stdin=CONFIG_MAP % "red")
    await server.kubectl(
        "wait", "--for=jsonpath={.data.colour}=red", "cm/settings", "--timeout=30s"
    )
    deleted = await server.kubectl("delete", "cm/settings", "--timeout=30s")
    assert deleted.out == 'configmap "settings" deleted\n'
    await server.kubectl("wait", "--for=delete", "cm/settings", "--timeout=30s")


async def test_explain_and_api_resources(server: TestServer) -> None:
    pod = await server.kubectl("explain", "pod.spec.containers.resources")
    assert "limits\t<map[string]Object>" in pod.out
    trainjob = await server.kubectl("explain", "trainjob.spec", "--recursive")
    assert "numNodes\t<integer>" in trainjob.out
    resources = await server.kubectl("api-resources", "--no-headers")
    kinds = {line.split()[-1] for line in resources.out.splitlines()}
    assert {"Pod", "Job", "JobSet", "TrainJob", "ClusterTrainingRuntime", "Event"} <= kinds
    categories = await server.kubectl("get", "all")
    assert "No resources found" in categories.err
    versions = await server.kubectl("api-versions")
    assert {"v1", "batch/v1", "trainer.kubeflow.org/v1alpha1"} <= set(versions.out.split())
    assert "+trainwright" in (await server.kubectl("version")).out


async def test_custom_kinds_are_served_at_once_with_their_columns(server: TestServer) -> None:
    await server.kubectl("apply", "-f", "-", stdin=CRD)
    name = "crd/widgets.example.org"
    await server.kubectl("wait", "--for=condition=Established", name, "--timeout=30s")
    widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n"
    await server.kubectl("apply", "-f", "-", stdin=widget)
    table = (await server.kubectl("get", "wd")).out.splitlines()
    assert [line.split() for line in table] == [["NAME", "SIZE"], ["w", "3"]]
    assert "How large it is." in (await server.kubectl("explain", "widget.spec")).out
    await server.kubectl("delete", name, "--timeout=30s")
    assert (await server.try_kubectl("get", "widgets")).code == 1


async def test_typed_creates_and_reviews(server: TestServer) -> None:
    await server.kubectl("create", "namespace", "team")
    await server.kubectl("create", "serviceaccount", "bot", "-n", "team")
    await server.kubectl("create", "configmap", "c", "--from-literal=a=1", "-n", "team")
    await server.kubectl("create", "secret", "generic", "s", "--from-literal=k=v", "-n", "team")
    await server.kubectl(
        "create", "job", "hello", "--image=busybox", "-n", "team", "--", "echo", "hi"
    )
    find = ("get", "job", "hello", "-n", "team", "-o", "jsonpath={..containers[0].command}")
    assert json.loads((await server.kubectl(*find)).out) == ["echo", "hi"]
    secret = ("get", "secret", "s", "-n", "team", "-o", "jsonpath={.data.k}")
    assert (await server.kubectl(*secret)).out == "dg=="
    assert (await server.kubectl("auth", "can-i", "create", "pods")).out == "yes\n"
    assert "trainwright:admin" in (await server.kubectl("auth", "whoami")).out
    token = (await server.kubectl("create", "token", "bot", "-n", "team")).out.strip()
    user = server.authenticator.find_user(token)
    assert user is not None
    assert user.name == "system:serviceaccount:team:bot"


TYPED_CREATES = [
    "namespace team",
    "serviceaccount bot",
    "configmap c --from-literal=a=1 --from-literal=b=",
    "secret generic s --from-literal=k=v",
    "quota q --hard=pods=2,requests.memory=1Gi",
    "service clusterip web --tcp=80:http",
    "job j --image=busybox -- sh -c true",
    "role reader --verb=get,list --resource=pods",
    "clusterrolebinding all --clusterrole=view --user=me",
    "priorityclass high --value=7 --description=first",
]


def _without_defaults(wanted: Any, seen: Any) -> Any:
    """What of `seen` the client asked for; the server adds defaults, the client nulls."""
    if isinstance(wanted, dict) and isinstance(seen, dict):
        return {
            key: _without_defaults(value, seen.get(key))
            for key, value in wanted.items()
            if value not in (None, {})
        }
    if isinstance(wanted, list) and isinstance(seen, list) and len(wanted) == len(seen):
        return [_without_defaults(w, s) for w, s in zip(wanted, seen, strict=True)]
    return seen


async def test_typed_creates_store_what_kubectl_would_print(server: TestServer) -> None:
    for command in TYPED_CREATES:
        options = ("-o", "json")
        words, _, rest = command.partition(" -- ")
        tail = ("--", *rest.split()) if rest else ()
        create = ("create", *words.split(), *options)
        local = await server.kubectl(*create, "--dry-run=client", *tail)
        stored = json.loads((await server.kubectl(*create, *tail)).out)
        wanted = json.loads(local.out)
        wanted.pop("status", None)
        assert _without_defaults(wanted, stored) == _without_defaults(wanted, wanted), command


async def test_describe_lists_the_events_of_an_object(server: TestServer) -> None:
    await server.kubectl("run", "p", "--image=busybox")
    uid = (await server.kubectl("get", "pod", "p", "-o", "jsonpath={.metadata.uid}")).out
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "p.1"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "p",
            "uid": uid,
        },
        "reason": "Pulled",
        "message": "the image is there",
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    await server.kubectl("create", "-f", "-", stdin=json.dumps(event))
    assert "the image is there" in (await server.kubectl("describe", "pod", "p")).out
    assert "Pulled" in (await server.kubectl("events", "--for", "pod/p")).out
    assert "pod/p" in (await server.kubectl("get", "events")).out
