"""Findings: facts about a job that a person should know, with evidence and the next step.

Conditions, events, CLI errors and `validate` are rendered from them. Each code is a row of `CODES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One kind of finding: its name is the key of `CODES`."""

    severity: Severity
    meaning: str
    """One sentence for the reference page."""
    next_step: str
    """What the reader can do, in the imperative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found: which code, about which object and field, and what was seen."""

    code: str
    subject: str
    """`Kind namespace/name`."""
    path: str = ""
    evidence: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is, from the table."""
        return CODES[self.code].severity

    def __str__(self) -> str:
        where = f"{self.subject}: {self.path}" if self.path else self.subject
        return f"{where}: {self.evidence}; {CODES[self.code].next_step}"


CODES: Mapping[str, Code] = {
    "InvalidField": Code(
        severity="error",
        meaning="A field breaks a rule of the schema or of admission.",
        next_step="change the field as the message says",
    ),
    "UnknownField": Code(
        severity="warning",
        meaning="A field is not part of the kind's schema and is dropped.",
        next_step="remove it, or correct its spelling",
    ),
    "UnknownKind": Code(
        severity="error",
        meaning="A manifest holds an object of a kind that is not known here.",
        next_step="correct apiVersion and kind, or leave the object out",
    ),
    "AdmissionWarning": Code(
        severity="warning",
        meaning="Admission accepts the object and has something to say about it.",
        next_step="read the message and decide",
    ),
    "RuntimeNotFound": Code(
        severity="error",
        meaning="The runtime that spec.runtimeRef names does not exist.",
        next_step="name one that `trainwright runtimes` lists, or create it",
    ),
    "SnapshotInvalid": Code(
        severity="error",
        meaning="The ConfigMap with the snapshot of the runtime is not one that this TrainJob took.",
        next_step="delete or rename that ConfigMap; a new snapshot is taken then",
    ),
    "JobSetForeign": Code(
        severity="error",
        meaning="A JobSet of the TrainJob's name belongs to somebody else, so it is left alone.",
        next_step="delete that JobSet, or give the TrainJob another name",
    ),
    "PolicyNotSupported": Code(
        severity="error",
        meaning="The runtime has a policy that no plugin here serves.",
        next_step="use a runtime with the torch policy or with mlPolicy.numNodes alone",
    ),
    "ObjectsNotBuilt": Code(
        severity="error",
        meaning="The TrainJob's objects could not be built from its runtime.",
        next_step="correct the field that the message names, and create the TrainJob again",
    ),
    "ObjectsRefused": Code(
        severity="error",
        meaning="The API server refused an object that the TrainJob needs.",
        next_step="remove the cause that the API server names; the TrainJob goes on by itself",
    ),
}
