"""`validate` and `render`: looking at a manifest before it runs, without a server."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from trainwright.cli.exits import Exit, fail, run_command
from trainwright.cli.options import Output, OutputFormat


class Report(StrEnum):
    """Formats of a list of findings."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


File = Annotated[
    str,
    typer.Option(
        "--filename", "-f", help="A manifest, or - for standard input.", show_default=False
    ),
]


def validate(
    file: File,
    strict: Annotated[bool, typer.Option(help="Warnings count as errors too.")] = False,
    output: Annotated[Report, typer.Option("--output", "-o", help="Output format.")] = Report.TABLE,
) -> None:
    """Check manifests as the API server would: schema, rules, runtime. Exit 3 when something is wrong.

    Runtimes are looked up in the same file first, then among the shipped ones.

    Examples:
      trainwright validate -f job.yaml
    """

    async def main() -> Exit:
        from trainwright.cli.checking import find_findings
        from trainwright.cli.printing import print_document
        from trainwright.cli.submit import read_manifest_file

        objects = read_manifest_file(file)
        if not objects:
            source = "standard input" if file == "-" else file
            fail(Exit.INVALID, f"{source}: holds no object, at least one was wanted")
        findings = find_findings(objects)
        if output is Report.TABLE:
            for finding in findings:
                print(f"{finding.severity}: {finding}")
        else:
            print_document([_to_json(finding) for finding in findings], output)
        errors = sum(finding.severity == "error" for finding in findings)
        warnings = sum(finding.severity == "warning" for finding in findings)
        if output is Report.TABLE:
            print(f"{len(objects)} object(s), {errors} error(s), {warnings} warning(s)")
        return Exit.INVALID if errors or (strict and warnings) else Exit.OK

    run_command(main)


def _to_json(finding: object) -> dict[str, str]:
    names = ("code", "severity", "subject", "path", "evidence")
    return {name: str(getattr(finding, name)) for name in names}


def render(
    file: File,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Print the JobSet that a TrainJob becomes; by default with the origin of each field.

    Long values are cut; -o wide has them whole.

    Examples:
      trainwright render -f job.yaml
      trainwright render -f job.yaml -o yaml
    """

    async def main() -> Exit:
        from trainwright.cli.checking import render_job
        from trainwright.cli.printing import print_object
        from trainwright.cli.submit import read_manifest_file

        rendered = render_job(read_manifest_file(file), whole=output is Output.WIDE)
        if output in {Output.JSON, Output.YAML, Output.NAME}:
            print_object(rendered.jobset, output)
        else:
            for line in rendered.lines:
                print(line)
        return Exit.OK

    run_command(main)
