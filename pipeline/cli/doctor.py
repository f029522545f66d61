"""``paraforge doctor``: what is installed, which engines work, and what to do about what does not."""

from __future__ import annotations

import typer

_MARKS = {"ok": "ok     ", "missing": "missing", "broken": "BROKEN ", "note": "note   "}


def doctor(
    as_json: bool = typer.Option(False, "--json", help="print JSON instead of lines"),
    repair: bool = typer.Option(
        False, "--repair", help="only rename DVC's files that a kill cut off, so that 'dvc repro' continues"
    ),
) -> None:
    """Check what is installed, which engines work, and whether this project's files are sound.

    Exits with 1 if something that every corpus needs is broken; optional things that are missing are
    only named.
    """
    import dataclasses
    import json

    if repair:
        from paraforge.shards.dvc_files import set_aside

        for path, aside in set_aside():
            typer.echo(
                f"{path} was cut off by a kill and is now {aside}: 'dvc repro' continues from finished work"
            )
        return
    from paraforge.configuration.diagnosis import diagnose

    findings = diagnose()
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=2))
    else:
        section = ""
        for finding in findings:
            if finding.section != section:
                section = finding.section
                typer.echo(f"{section}")
            typer.echo(f"  {_MARKS[finding.state]}  {finding.name}: {finding.detail}")
            if finding.remedy:
                typer.echo(f"           -> {finding.remedy}")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(1)
