from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api import kinds
from trainwright.api.wellknown import JOB_NAME_LABEL, JOBSET_NAME_LABEL
from trainwright.server.object_index import ObjectIndex
from trainwright.server.stored import Stored, build_stored, read_stored

FEW = st.sampled_from(["a", "b", "c", "a-b", "z"])
LABELS = st.dictionaries(st.sampled_from([JOB_NAME_LABEL, JOBSET_NAME_LABEL, "free"]), FEW)


@st.composite
def stored_pods(draw: st.DrawFn) -> Stored:
    metadata = {
        "namespace": draw(FEW),
        "name": draw(FEW),
        "uid": "u",
        "labels": draw(LABELS),
        "ownerReferences": [{"uid": uid} for uid in draw(st.sets(FEW))],
    }
    obj = {"metadata": metadata, "spec": {"nodeName": draw(FEW)}}
    return build_stored(kinds.POD, obj, draw(st.integers(1, 10**9)))


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.lists(st.tuples(stored_pods(), st.booleans()), max_size=30), FEW, LABELS)
def test_indexes_find_what_a_scan_finds(
    writes: list[tuple[Stored, bool]], wanted: str, labels: dict[str, str]
) -> None:
    index, model = ObjectIndex(), {}
    for stored, keep in writes:
        key = (stored.namespace, stored.name)
        if keep:
            index.put(stored)
            model[key] = stored
        elif model.pop(key, None):
            index.remove(key)
    in_order = [model[key] for key in sorted(model)]
    assert list(index.all()) == in_order
    assert list(index.all(wanted)) == [s for s in in_order if s.namespace == wanted]
    owned = index.find({}, owner_uid=wanted)
    assert owned is not None
    assert {id(s) for s in owned} == {id(s) for s in in_order if wanted in s.owners}
    on_node = index.find({}, node_name=wanted)
    assert on_node is not None
    assert {id(s) for s in on_node} == {id(s) for s in in_order if s.node_name == wanted}
    candidates = index.find(labels)
    if candidates is not None:
        matching = [s for s in in_order if labels.items() <= s.labels.items()]
        assert {id(s) for s in matching} <= {id(s) for s in candidates}


@settings(deadline=None, max_examples=100, derandomize=True)
@given(stored_pods())
def test_bytes_are_indexed_as_their_object_was(stored: Stored) -> None:
    again = read_stored(kinds.POD, stored.data, stored.revision)
    assert again.decode() == stored.decode()
    for field in ("namespace", "name", "uid", "revision", "labels", "owners", "node_name"):
        assert getattr(again, field) == getattr(stored, field)
