from __future__ import annotations

import pytest

from trainwright.api import kinds
from trainwright.base.errors import BadRequest
from trainwright.core.selectors import (
    check_field_selector,
    parse_field_selector,
    parse_label_selector,
)


@pytest.mark.parametrize(
    ("text", "labels", "chosen"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a = b , c", {"a": "b", "c": ""}, True),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (x, y)", {"a": "y"}, True),
        ("a in (x,y),!d", {"a": "y", "d": ""}, False),
        ("a notin (x)", {}, True),
        ("a notin (x)", {"a": "x"}, False),
        ("x.y/a", {"x.y/a": "1"}, True),
        ("!a", {}, True),
        ("a=", {"a": ""}, True),
        ("a=,b=c", {"a": "", "b": "c"}, True),
        ("n>3", {"n": "4"}, True),
        ("n<3", {"n": "4"}, False),
        ("n>3", {"n": "x"}, False),
        ("in in (in)", {"in": "in"}, True),
    ],
)
def test_label_selector_chooses(text: str, labels: dict[str, str], chosen: bool) -> None:
    selector = parse_label_selector(text)
    assert selector.matches(labels) is chosen
    assert parse_label_selector(str(selector)) == selector


@pytest.mark.parametrize(
    "text", ["=a", "a in x", "a in (x", "a,", "!", "a b", "-a=b", "a=b c", "a=b!", "n>x"]
)
def test_label_selector_refuses_what_it_cannot_read(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_label_selector(text)


def test_field_selector_reads_paths_booleans_and_escapes() -> None:
    pod = {
        "metadata": {"name": "a,b"},
        "spec": {"hostNetwork": True},
        "status": {"phase": "Running"},
    }
    chosen = parse_field_selector(r"metadata.name=a\,b,spec.hostNetwork==true,status.phase!=Failed")
    assert chosen.matches(kinds.POD, pod)
    assert chosen.exact("metadata.name") == "a,b"
    assert str(parse_field_selector(str(chosen))) == str(chosen)
    assert not parse_field_selector("spec.hostNetwork=true").matches(kinds.POD, {"spec": {}})


def test_field_selector_counts_succeeded_pods_of_a_job() -> None:
    assert parse_field_selector("status.successful=2").matches(
        kinds.JOB, {"status": {"succeeded": 2}}
    )
    assert parse_field_selector("status.successful=0").matches(kinds.JOB, {})


def test_field_selector_refuses_unknown_fields_and_nonsense() -> None:
    with pytest.raises(BadRequest, match=r"spec\.image"):
        check_field_selector(kinds.POD, parse_field_selector("spec.image=x"))
    check_field_selector(kinds.JOBSET, parse_field_selector("spec.q=x"), ["spec.q"])
    with pytest.raises(BadRequest):
        parse_field_selector("metadata.name")
