"""What is kept of an object, and how it is found again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import JOBSET
from trainwright.machinery.cache import (
    Cache,
    CachedObject,
    Projection,
    build_cached_object,
    parse_revision,
)
from trainwright.machinery.cache_projections import PROJECTIONS, WHOLE

if TYPE_CHECKING:
    from trainwright.base.objects import Object

OBJECT: Object = {
    "metadata": {
        "name": "js",
        "namespace": "team",
        "uid": "u-1",
        "resourceVersion": "7",
        "labels": {"a": "b"},
        "ownerReferences": [{"uid": "o-1"}, {"uid": "o-2"}],
        "managedFields": [{"manager": "m"}],
    },
    "spec": {"suspend": False, "replicatedJobs": [{"name": "node"}]},
    "status": {"restarts": 1},
    "unknown": {"kept": None},
}
HEAD = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
METADATA = {key: value for key, value in OBJECT["metadata"].items() if key != "managedFields"}


def make(name: str = "js", namespace: str = "team", **metadata: Any) -> CachedObject:
    obj = {"metadata": {"name": name, "namespace": namespace, "uid": name, **metadata}}
    return build_cached_object(JOBSET, obj, WHOLE)


def test_an_object_is_kept_whole_but_for_managed_fields() -> None:
    cached = build_cached_object(JOBSET, OBJECT, WHOLE)
    assert cached.decode() == {**HEAD, **OBJECT, "metadata": METADATA}
    assert (cached.key, cached.uid, cached.revision) == (("team", "js"), "u-1", 7)
    assert (cached.labels, cached.owners) == ({"a": "b"}, ("o-1", "o-2"))


def test_a_jobset_is_kept_with_no_more_of_its_spec_than_whether_it_is_suspended() -> None:
    cached = build_cached_object(JOBSET, OBJECT, PROJECTIONS[JOBSET])
    assert cached.decode()["spec"] == {"suspend": False}
    assert cached.decode()["status"] == {"restarts": 1}


def test_partial_objects_take_the_name_of_their_kind() -> None:
    partial = {
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": OBJECT["metadata"],
    }
    cached = build_cached_object(JOBSET, partial, Projection(metadata_only=True))
    assert cached.decode() == {**HEAD, "metadata": METADATA}


def test_revisions_are_compared_as_numbers() -> None:
    older, newer = make(resourceVersion="9"), make(resourceVersion="10")
    assert newer.is_newer_than(older)
    assert not older.is_newer_than(newer)
    assert not older.is_newer_than(older)
    assert make(resourceVersion="other").is_newer_than(newer)
    assert parse_revision("") == 0


def test_objects_are_found_by_namespace_labels_and_owner() -> None:
    cache = Cache()
    cache.put(make("one", labels={"a": "1", "b": "2"}, ownerReferences=[{"uid": "o"}]))
    cache.put(make("two", labels={"a": "1"}, ownerReferences=[{"uid": "o"}]))
    cache.put(make("one", "other", labels={"a": "1"}))
    assert [o.key for o in cache.find("team")] == [("team", "one"), ("team", "two")]
    assert [o.key for o in cache.find(labels={"a": "1", "b": "2"})] == [("team", "one")]
    assert [o.name for o in cache.find(owner_uid="o")] == ["one", "two"]
    assert cache.names("other") == [("other", "one")]


def test_an_object_that_changes_hands_is_found_at_its_new_owner_only() -> None:
    cache = Cache()
    cache.put(make(ownerReferences=[{"uid": "before"}]))
    cache.put(make(ownerReferences=[{"uid": "after"}]))
    assert cache.find(owner_uid="before") == []
    assert len(cache.find(owner_uid="after")) == 1
    cache.remove(("team", "js"))
    assert cache.find(owner_uid="after") == []
    assert cache.remove(("team", "js")) is None


def test_every_state_is_newer_once_the_order_is_forgotten() -> None:
    cache = Cache()
    cache.put(make(resourceVersion="100"))
    cache.forget_order()
    known = cache.get(("team", "js"))
    assert known is not None
    assert make(resourceVersion="3").is_newer_than(known)
