"""What the server reads out of request bodies, Accept headers and paths."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api import kinds
from trainwright.base.errors import (
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    UnsupportedMediaType,
)
from trainwright.server.bodies import decode_json, decode_yaml, find_duplicate_fields
from trainwright.server.http import accepts_gzip, build_warning_headers
from trainwright.server.negotiation import (
    DISCOVERY_SHAPES,
    OBJECT_SHAPES,
    Form,
    Shape,
    choose_form,
    require_media_type,
)
from trainwright.server.protobuf import decode_protobuf
from trainwright.server.requests import ServedKind
from trainwright.server.routing import find_route, find_verb


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json", Form()),
        ("application/yaml", Form("application/yaml")),
        ("application/vnd.kubernetes.protobuf,application/json", Form()),
        ("application/vnd.kubernetes.protobuf, */*", Form()),
        ("application/json;q=0.1, application/yaml;q=0.9", Form("application/yaml")),
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Form(shape=Shape.TABLE),
        ),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Form()),
        (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Form(shape=Shape.METADATA_LIST),
        ),
    ],
)
def test_form_follows_the_accept_header(accept: str, form: Form) -> None:
    assert choose_form(accept, OBJECT_SHAPES) == form


def test_discovery_answers_with_the_parameters_that_clients_decide_by() -> None:
    accept = (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,"
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
    )
    form = choose_form(accept, DISCOVERY_SHAPES)
    assert form.content_type == (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )
    only_beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,*/*"
    assert choose_form(only_beta, DISCOVERY_SHAPES) == Form()


@pytest.mark.parametrize("accept", ["application/cbor", "text/html", "application/json;q=0"])
def test_nothing_acceptable_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        choose_form(accept, OBJECT_SHAPES)


def test_media_type_of_the_body_ignores_parameters() -> None:
    allowed = ("application/json", "application/yaml")
    assert require_media_type("application/json; charset=utf-8", allowed) == "application/json"
    assert require_media_type("", allowed) == "application/json"
    with pytest.raises(UnsupportedMediaType):
        require_media_type("application/vnd.kubernetes.protobuf", allowed)


def test_yaml_is_read_as_another_way_to_write_json() -> None:
    text = (
        b"on: 2024-01-02\nflag: true\n7: {a: [1, 2.5, null, 'yes']}\nwhen: 2024-01-02T03:04:05Z\n"
    )
    assert decode_yaml(text) == {
        "true": "2024-01-02",
        "flag": True,
        "7": {"a": [1, 2.5, None, "yes"]},
        "when": "2024-01-02T03:04:05Z",
    }


def test_yaml_aliases_cannot_grow_without_bound() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(BadRequest, match="too large"):
        decode_yaml("\n".join(lines).encode())


@pytest.mark.parametrize("body", [b"", b"{", b'{"a": NaN}', b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode_json(body)


@pytest.mark.parametrize("body", [b"a: [", b"a: .nan", b"--- 1\n--- 2\n", b"? [a]\n: b\n", b"\x00"])
def test_what_is_no_yaml_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode_yaml(body)


def test_duplicate_fields_are_found_with_their_path() -> None:
    body = b'{"spec": {"a": 1, "a": 2, "l": [{"x": 1}, {"x": 1, "x": 2}]}, "spec": {}}'
    assert find_duplicate_fields(body) == ["spec.a", "spec.l[1].x", "spec"]
    assert find_duplicate_fields(b'{"a": {"x": 1}, "b": {"x": 1}}') == []


@pytest.mark.parametrize(
    ("header", "accepted"),
    [("gzip, deflate", True), ("br;q=1, gzip;q=0.5", True), ("gzip;q=0", False), ("", False)],
)
def test_gzip_only_where_the_client_reads_it(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


def test_warnings_are_quoted_and_bounded() -> None:
    headers = build_warning_headers(['say "a"\nb', 'say "a"\nb', "x" * 5000])
    assert headers == [("warning", '299 - "say \\"a\\" b"')]


def _served(group: str, version: str, plural: str) -> ServedKind | None:
    for kind in kinds.KINDS:
        if (kind.group, kind.version, kind.plural) == (group, version, plural):
            return ServedKind(kind=kind, schema=None, custom=False)
    return None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("api/v1/pods", ("Pod", "", "", "")),
        ("api/v1/namespaces/a/pods/p/log", ("Pod", "a", "p", "log")),
        ("api/v1/namespaces", ("Namespace", "", "", "")),
        ("api/v1/namespaces/a", ("Namespace", "", "a", "")),
        ("api/v1/namespaces/a/finalize", ("Namespace", "", "a", "finalize")),
        ("api/v1/namespaces/a/status", ("Namespace", "", "a", "status")),
        ("apis/batch/v1/namespaces/a/jobs/j", ("Job", "a", "j", "")),
        ("apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/r", ("ClusterTrainingRuntime", "", "r", "")),
        ("api/v1/pods/p", None),
        ("api/v1/namespaces/a/nodes", None),
        ("apis/batch/v2/jobs", None),
        ("api/v1/namespaces/a/pods/p/log/more", None),
    ],
)  # fmt: skip
def test_paths_name_kinds(path: str, found: tuple[str, str, str, str] | None) -> None:
    route = find_route(path.split("/"), _served)
    seen = route and (route.kind.kind, route.namespace, route.name, route.subresource)
    assert seen == found


def test_methods_that_a_path_has_not_are_refused() -> None:
    everywhere = find_route(["api", "v1", "pods"], _served)
    assert everywhere is not None
    assert find_verb(everywhere, "GET", watching=True) == "watch"
    for method in ("POST", "DELETE", "PUT"):
        with pytest.raises(MethodNotAllowed):
            find_verb(everywhere, method, watching=False)


def _field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | 2, len(value))) + value


def _envelope(kind: str, message: bytes) -> bytes:
    return b"k8s\x00" + _field(1, _field(1, b"v1") + _field(2, kind.encode())) + _field(2, message)


def test_protobuf_is_read_where_nothing_would_be_lost() -> None:
    entry = _field(1, b"k") + _field(2, b"v")
    message = _field(1, _field(1, b"a") + _field(8, b"") + _field(11, entry)) + _field(2, entry)
    assert decode_protobuf(_envelope("Secret", message)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "labels": {"k": "v"}},
        "data": {"k": "dg=="},
    }
    with pytest.raises(UnsupportedMediaType, match="send application/json"):
        decode_protobuf(_envelope("Pod", message))
    with pytest.raises(UnsupportedMediaType, match="field 9 of Secret"):
        decode_protobuf(_envelope("Secret", _field(9, b"x")))
    for wrong in (b"", b"{}", _envelope("Secret", message)[:-1], b"k8s\x00\xff\xff"):
        with pytest.raises(BadRequest):
            decode_protobuf(wrong)


@given(st.binary(max_size=80))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_no_bytes_break_the_protobuf_decoder(noise: bytes) -> None:
    for body in (b"k8s\x00" + noise, _envelope("Job", noise)):
        with contextlib.suppress(BadRequest, UnsupportedMediaType):
            decode_protobuf(body)
