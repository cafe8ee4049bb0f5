#!/usr/bin/env python3
"""Apply the golden cases to a live API server and compare what its TrainJob controller makes of them.

    check.py --server https://127.0.0.1:6443 --token T --insecure [--only 012] [--cases DIR] [--lane gate] [--upstream]

Each case is played in a fresh namespace: its input is created object by object, then its steps; after each of them the
namespace is looked at until it holds what is expected, or the time is up. README.md says what "same" means.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import difflib
import json
import pathlib
import ssl
import sys
import time
import urllib.error
import urllib.request
import uuid

import yaml
from normal import TRAINER, applied_fields, event_line, normalise, refusal

API = {"TrainJob": TRAINER, "TrainingRuntime": TRAINER, "ClusterTrainingRuntime": TRAINER, "JobSet": "jobset.x-k8s.io/v1alpha2",
       "ConfigMap": "v1", "Namespace": "v1", "PriorityClass": "scheduling.k8s.io/v1"}
CLUSTER_SCOPED = {"ClusterTrainingRuntime", "PriorityClass", "Namespace"}
WATCHED = [*((k, API[k]) for k in ("TrainJob", "JobSet", "ConfigMap")), ("Secret", "v1"),
           ("PodGroup", "scheduling.x-k8s.io/v1alpha1"), ("PodGroup", "scheduling.volcano.sh/v1beta1")]
VERBS = {"merge": ("PATCH", "merge-patch+json"), "status": ("PATCH", "merge-patch+json"), "create": ("POST", "json"), "delete": ("DELETE", "json")}


def path_of(kind: str, api: str, namespace: str, name: str = "") -> str:
    where = "" if kind in CLUSTER_SCOPED else f"namespaces/{namespace}/"
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    return f"{'api' if api == 'v1' else 'apis'}/{api}/{where}{plural}" + (f"/{name}" if name else "")


class Case:
    """One folder of files; README.md lists them."""

    def __init__(self, folder: pathlib.Path, upstream: bool = True):
        def load(name: str, default: object) -> object:
            return yaml.safe_load((folder / name).read_text()) if (folder / name).exists() else default
        self.folder, self.name, self.about = folder, folder.name, load("case.yaml", {})
        self.input = list(yaml.safe_load_all((folder / "input.yaml").read_text()))
        self.steps, self.managed = load("steps.yaml", []), load("managedFields.yaml", None)
        self.expected = load("expected.yaml", {"steps": []})
        self.expected = self.expected if upstream else load("expected-ours.yaml", self.expected)
        self.words = self.expected.get("about", self.about.get("about", []))
        self.lane, self.hold = self.about.get("lane", "bare"), self.about.get("hold", 0.6)


class Run:
    """One case being played in its own namespace of an API server."""

    def __init__(self, args: argparse.Namespace, tls: ssl.SSLContext, case: Case):
        self.args, self.tls, self.case, self.text = args, tls, case, ""
        self.namespace = f"golden-{case.name[:3].lower()}-{uuid.uuid4().hex[:6]}"

    def send(self, method: str, path: str, body: object = None, content: str = "json") -> tuple[int, dict, list[str]]:
        """Return (HTTP status, decoded body, warnings)."""
        headers = {"Authorization": f"Bearer {self.args.token}", "Content-Type": f"application/{content}", "User-Agent": "golden-check"}
        request = urllib.request.Request(f"{self.args.server}/{path}", json.dumps(body).encode() if body else None, headers, method=method)
        try:
            answer = urllib.request.urlopen(request, context=self.tls, timeout=40)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else {"message": text}, answer.headers.get_all("Warning") or []

    def act(self, verb: str, target: str, body: dict | None = None) -> list[dict]:
        """Send one request; return what is worth noting about its answer."""
        (kind, name), (method, content) = target.split("/", 1), VERBS[verb]
        path = path_of(kind, API[kind], self.namespace, "" if verb == "create" else name)
        code, answer, warnings = self.send(method, path + ("/status" if verb == "status" else ""), body, content)
        refused = {"causes": refusal(answer)} if code >= 300 else {}
        self.text += " ".join([*warnings, answer.get("message", "") if refused else ""])
        noted = {"object": target, "code": code, **refused, **({"warnings": len(warnings)} if warnings else {})}
        return [noted] if refused or warnings else []

    def create_input(self) -> list[dict]:
        noted = []
        for obj in self.case.input:
            target = f"{obj['kind']}/{obj['metadata']['name']}"
            if obj["kind"] in CLUSTER_SCOPED:
                self.act("delete", target)
                self.text = ""
            noted += self.act("create", target, obj)
            time.sleep(0.5 if obj["kind"] != "TrainJob" else 0)     # admission reads runtimes through a cache
        return noted

    def look(self) -> dict:
        """The namespace now: objects by Kind/name, distinct TrainJob events."""
        raw, about = {}, self.case.about
        for kind, version in WATCHED:
            items = self.send("GET", path_of(kind, version, self.namespace))[1].get("items", [])
            raw |= {f"{kind}/{o['metadata']['name']}": {"apiVersion": version, "kind": kind, **o} for o in items}
        raw.pop("ConfigMap/kube-root-ca.crt", None)
        swaps = {o["metadata"]["uid"]: f"<uid of {o['metadata']['name']}>" for o in raw.values() if o["kind"] == "TrainJob"}
        swaps[self.namespace] = "<namespace>"
        facts, unordered = about.get("facts", {}), about.get("unordered", [])
        self.fields = {i: applied_fields(o, swaps) for i, o in raw.items()}
        objects = {i: normalise(o, swaps, facts.get(i, {}), unordered) for i, o in raw.items() if o["kind"] in about.get("objects", [o["kind"]])}
        events = self.send("GET", path_of("Event", "events.k8s.io/v1", self.namespace))[1].get("items", [])
        events = [e for e in events if e["regarding"]["kind"] == "TrainJob"]
        self.text += " ".join({e.get("note", "") for e in events})
        return {"objects": objects, "events": sorted({event_line(e) for e in events})}

    def settle(self, wanted: dict | None) -> dict:
        """Look until the wanted state has held for a while; without one, wait long enough and look once."""
        time.sleep(max(3, self.case.hold * 1.5) if wanted is None else 0)
        start = held_since = time.monotonic()
        while True:
            state, now = self.look(), time.monotonic()
            held_since = held_since if state == wanted else now
            if wanted is None or now - held_since >= self.case.hold or now - start > self.args.limit + self.case.hold:
                return state
            time.sleep(0.2)

    def play(self, record: bool = False) -> dict:
        """Create the input, play the steps; return what was seen, in the shape of expected.yaml."""
        wanted, before, steps, plan = {"objects": {}, "events": []}, {}, [], self.case.expected["steps"]
        if self.act("create", f"Namespace/{self.namespace}", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}):
            raise SystemExit(f"cannot create namespace {self.namespace}: {self.text}")
        for index, step in enumerate([{"step": "create"}, *self.case.steps]):
            entry = plan[index] if index < len(plan) else {}
            objects = {k: v for k, v in (wanted["objects"] | entry.get("objects", {})).items() if k not in entry.get("gone", [])}
            wanted = {"objects": objects, "events": entry.get("events", [])}
            noted = self.create_input() if index == 0 else [n for verb in VERBS if verb in step for n in self.act(verb, step[verb], step.get("body"))]
            time.sleep(step.get("wait", 0))
            state = self.settle(None if record else wanted)
            seen = {"admission": noted, "objects": {k: v for k, v in state["objects"].items() if before.get(k) != v},
                    "gone": sorted(before.keys() - state["objects"].keys()), "events": state["events"]}
            steps.append({"step": step["step"]} | {k: v for k, v in seen.items() if v})
            before = state["objects"]
        return {"about": [w for w in self.case.words if w in self.text], "steps": steps}

    def tidy(self) -> None:
        for obj in self.case.input:
            self.act("delete", f"{obj['kind']}/{obj['metadata']['name']}")
        self.act("delete", f"Namespace/{self.namespace}")

    def check(self) -> tuple[list[str], float]:
        """Return (lines of difference, seconds)."""
        start, expected = time.monotonic(), {"about": self.case.words, "steps": self.case.expected["steps"]}
        try:
            seen = self.play()
            if self.case.managed is not None:
                seen["managed"], expected["managed"] = {k: self.fields.get(k) for k in self.case.managed}, self.case.managed
        finally:
            self.tidy()
        old, new = (yaml.safe_dump(v, width=160).splitlines() for v in (expected, seen))
        return list(difflib.unified_diff(old, new, "expected", "seen", lineterm="", n=4)), time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--ca", help="file with the server's CA")
    parser.add_argument("--insecure", action="store_true", help="do not verify the server")
    parser.add_argument("--only", action="append", default=[], help="prefix of case names; may be repeated")
    parser.add_argument("--cases", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--lane", default="bare", help="bare (default), gate or live; see README.md")
    parser.add_argument("--upstream", action="store_true", help="ignore expected-ours.yaml")
    parser.add_argument("--limit", type=float, default=20, help="seconds to wait for the expected state, per step")
    parser.add_argument("--jobs", type=int, default=6, help="cases played at the same time")
    args = parser.parse_args()
    tls = ssl._create_unverified_context() if args.insecure else ssl.create_default_context(cafile=args.ca)
    cases = [Case(f.parent, args.upstream) for f in sorted(args.cases.glob("*/input.yaml"))]
    cases = [c for c in cases if c.lane == args.lane and (not args.only or c.name.startswith(tuple(args.only)))]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for case, (diff, seconds) in zip(cases, pool.map(lambda c: Run(args, tls, c).check(), cases)):
            failed += bool(diff)
            print(f"{'FAIL' if diff else 'pass'}  {case.name}  {seconds:.1f} s", *diff, sep="\n      ", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
