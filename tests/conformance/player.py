"""Plays scenarios of HTTP requests against a Kubernetes API server and writes down its answers.

A scenario is a list of steps. In texts, `$ns` is a namespace of its own, and `$NAME` what an earlier
step kept. Answers are written without what differs from run to run: uids, versions, times.
"""

from __future__ import annotations

import json
import re
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCENARIOS = Path(__file__).with_name("scenarios")
RECORDED = Path(__file__).with_name("recorded")
JSON = "application/json"
REQUEST_S = 40
RETRY_S = 20.0
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"\d+s")
_GENERATED = re.compile(r"\b(gen-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_VERSIONS = ("resourceVersion", "continue")


@dataclass(frozen=True)
class Target:
    """A server, and a token of somebody who may do everything."""

    url: str
    ca_file: Path
    token: str


@dataclass
class Player:
    """One scenario against one server."""

    target: Target
    namespace: str
    kept: dict[str, str] = field(default_factory=dict)

    def play(self, scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Every answer, ready to be compared."""
        self.kept["ns"] = self.namespace
        self._send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}}, {})
        try:
            return [self._step(step) for step in scenario["steps"]]
        finally:
            self._send("DELETE", f"/api/v1/namespaces/{self.namespace}", None, {})

    def _step(self, step: Mapping[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + RETRY_S
        answer = self._ask(step)
        # What a controller does in its own time is asked for again until it is done.
        while "until" in step and not self._has(answer, step["until"]):
            assert time.monotonic() < deadline, f"{step} is still answered by {answer}"
            time.sleep(0.1)
            answer = self._ask(step)
        for name, path in step.get("keep", {}).items():
            self.kept[name] = str(find(answer["body"], path))
        shown = {"step": step["do"], "code": answer["code"], **answer["headers"]}
        body = without_wording(self._normalise(answer["body"]))
        for column in (body.get("columnDefinitions") or ()) if isinstance(body, dict) else ():
            column.pop("description")
        if isinstance(body, list):
            body = [event for event in body if not is_idle_bookmark(event)]
        for path in step.get("ignore", ()):
            drop(body, path)
        if step.get("show"):
            body = {path: find(body, path) for path in step["show"]}
        return shown | {"body": body}

    def _ask(self, step: Mapping[str, Any]) -> dict[str, Any]:
        method, path = self._fill(step["do"]).split(" ", 1)
        headers = {"Accept": step.get("accept", JSON)}
        if "body" in step or "text" in step:
            headers["Content-Type"] = step.get("type", JSON)
        body = self._fill(step["text"]).encode() if "text" in step else self._fill(step.get("body"))
        return self._send(method, path, body, headers)

    @staticmethod
    def _has(answer: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
        return all(
            (answer["code"] if path == "code" else find(answer["body"], path)) == value
            for path, value in wanted.items()
        )

    def _send(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        said = {"Authorization": f"Bearer {self.target.token}", "Content-Type": JSON, **headers}
        request = urllib.request.Request(self.target.url + path, data, said, method=method)
        context = ssl.create_default_context(cafile=str(self.target.ca_file))
        try:
            answer = urllib.request.urlopen(request, timeout=REQUEST_S, context=context)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return {
                "code": answer.status,
                "headers": find_warnings(answer.headers.get_all("Warning") or ()),
                "body": parse_body(answer.read()),
            }

    def _fill(self, value: Any) -> Any:
        """A value with what was kept in the place of `$NAME`."""
        if isinstance(value, str):
            for name in sorted(self.kept, key=len, reverse=True):
                value = value.replace(f"${name}", self.kept[name])
            return value
        if isinstance(value, dict):
            return {self._fill(key): self._fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._fill(item) for item in value]
        return value

    def _normalise(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: self._normalise(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self._normalise(item) for item in value]
        if isinstance(value, str):
            if key in _VERSIONS and value:
                return f"<{key}>"
            value = value.replace(self.namespace, "<ns>")
            value = _TIME.sub("<time>", _UID.sub("<uid>", value))
            value = _AGE.sub("<age>", value) if _AGE.fullmatch(value) else value
            return _GENERATED.sub(r"\1<generated>", value)
        return value


def is_idle_bookmark(event: Any) -> bool:
    """Whether an event only says that nothing happened: how many of those come is by chance."""
    return (
        isinstance(event, dict)
        and event.get("type") == "BOOKMARK"
        and not find(event, "object.metadata.annotations")
    )


def without_wording(body: Any) -> Any:
    """A Status without its sentences: who is refused what, and why, is the contract, not the words.

    The note that some rules were not checked because of other findings (field `<nil>`) goes too.
    """
    if not isinstance(body, dict) or body.get("kind") != "Status":
        return body
    kept = {key: value for key, value in body.items() if key != "message"}
    details = dict(kept.pop("details", None) or {})
    causes = {
        f"{cause.get('field')}: {cause.get('reason')}"
        for cause in details.pop("causes", ())
        if cause.get("field") != "<nil>"
    }
    if causes:
        details["causes"] = sorted(causes)
    return kept | ({"details": details} if details else {})


def find_warnings(headers: Sequence[str]) -> dict[str, Any]:
    """The texts of Warning headers, if there are any."""
    texts = [header.split('"', 1)[1].rsplit('"', 1)[0] for header in headers]
    return {"warnings": texts} if texts else {}


def parse_body(data: bytes) -> Any:
    """JSON, or the JSON of each line of a stream, or the text."""
    text = data.decode()
    try:
        return json.loads(text) if text else None
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line]
    except ValueError:
        return text


def find(value: Any, path: str) -> Any:
    """The value at a path such as `metadata.name` or `items.0.data`; None when there is none."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit():
            value = value[int(part)] if int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def drop(value: Any, path: str) -> None:
    """Remove what is at a path; `*` means every element."""
    head, _, rest = path.partition(".")
    if head == "*":
        for item in list(value.values() if isinstance(value, dict) else value or ()):
            drop(item, rest)
    elif isinstance(value, dict) and head in value:
        if rest:
            drop(value[head], rest)
        else:
            del value[head]


def list_scenarios() -> list[str]:
    """Their names."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def load_scenario(name: str) -> Any:
    """A scenario: `title` and `steps`."""
    return yaml.safe_load((SCENARIOS / f"{name}.yaml").read_text())


def load_record(name: str) -> Any:
    """What a real API server answered."""
    return yaml.safe_load((RECORDED / f"{name}.yaml").read_text())


def write_record(name: str, answers: list[dict[str, Any]]) -> None:
    """Keep what a real API server answered."""
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{name}.yaml").write_text(
        yaml.safe_dump(answers, sort_keys=False, width=120, allow_unicode=True)
    )


def find_differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two answers differ, a line each."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            line
            for key in sorted({*ours, *theirs})
            for line in find_differences(
                ours.get(key, "<absent>"), theirs.get(key, "<absent>"), f"{path}.{key}"
            )
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            line
            for index, (one, other) in enumerate(zip(ours, theirs, strict=True))
            for line in find_differences(one, other, f"{path}[{index}]")
        ]
    return [] if ours == theirs else [f"{path}: {ours!r}, a real server: {theirs!r}"]
