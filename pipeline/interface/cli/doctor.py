"""``paraforge doctor``: what is installed, which engines work, and what to do about what does not."""

from pathlib import Path

import typer

_MARKS = {"ok": "ok     ", "missing": "missing", "broken": "BROKEN ", "note": "note   "}


def doctor(
    as_json: bool = typer.Option(False, "--json", help="print JSON instead of lines"),
    repair: bool = typer.Option(
        False,
        "--repair",
        help="only rename DVC's files that a kill cut off and remove inputs/ links to files that are gone, "
        "so that 'dvc repro' continues",
    ),
    install_fairseq: bool = typer.Option(
        False, "--install-fairseq", help="only build and install fairseq, which trains translation models"
    ),
) -> None:
    """Check what is installed, which engines work, and whether this project's files are sound.

    In a project of another version it shows which stages run again and why.

    Exits with 1 if something that every corpus needs is broken; optional things that are missing are
    only named.
    """
    import dataclasses
    import json

    if install_fairseq:
        from paraforge.translation.models.fairseq_installation import install_fairseq as install

        raise typer.Exit(0 if install() else 1)
    if repair:
        from paraforge.base.shards.dvc_files import broken_links, set_aside

        for path, aside in set_aside():
            typer.echo(
                f"{path} was cut off by a kill and is now {aside}: 'dvc repro' continues from finished work"
            )
        for path in broken_links():
            typer.echo(f"{path}: removed; it was a link to {path.readlink()}, which is gone")
            path.unlink()
        return
    from paraforge.interface.configuration.diagnosis import diagnose
    from paraforge.interface.project.upgrade import project_findings

    findings = [*diagnose(), *project_findings(Path())]
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
