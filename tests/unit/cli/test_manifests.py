"""`manifests`: whole objects, in YAML that reads back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from typer.testing import CliRunner

from trainwright.cli.main import app

if TYPE_CHECKING:
    from pathlib import Path


def test_each_part_is_what_its_name_says() -> None:
    for part, kinds in (
        ("crds", {"CustomResourceDefinition"}),
        ("runtimes", {"ClusterTrainingRuntime"}),
        ("webhooks", {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}),
    ):
        done = CliRunner().invoke(app, ["manifests", part])
        assert done.exit_code == 0
        assert {obj["kind"] for obj in yaml.safe_load_all(done.stdout)} == kinds


def test_webhooks_can_be_reached_by_url(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("PEM")
    arguments = ["--url", "https://127.0.0.1:9443", "--ca-file", str(authority)]
    done = CliRunner().invoke(app, ["manifests", "webhooks", *arguments])
    for obj in yaml.safe_load_all(done.stdout):
        for webhook in obj["webhooks"]:
            assert webhook["clientConfig"]["url"].startswith("https://127.0.0.1:9443/")
            assert webhook["clientConfig"]["caBundle"] == "UEVN"


@pytest.mark.parametrize("arguments", [["crds", "--url", "x"], ["nothing"], []])
def test_what_makes_no_sense_is_a_usage_error(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["manifests", *arguments]).exit_code == 2
