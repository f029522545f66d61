"""Build a paraphrase corpus from Tatoeba's public export, and record what came out.

Usage: python examples/tatoeba/build.py PROJECT [CHOICE ...]

See README.md in this directory.
"""

import argparse
import bz2
import os
import platform
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from paraforge import __version__
from paraforge.base.files import atomic_path, files_below, read_json, sha256_file, write_json
from paraforge.base.text.language_codes import two_letters

EXPORTS = "https://downloads.tatoeba.org/exports/per_language"
CHOICES = ("translation=small", "select=quality", "embeddings=small", "lexicon=default", "triplets=default")
OUTPUTS = ("data/corpus", "data/rejected", "data/lexicon", "data/triplets", "models/embeddings", "reports")
RECORD = "record.json"


def export_names(language: str) -> tuple[str, str, str]:
    """Return the names of the three files: both languages' sentences with authors, and their links."""
    return (
        f"{language}_sentences_detailed.tsv.bz2",
        "eng_sentences_detailed.tsv.bz2",
        f"{language}-eng_links.tsv.bz2",
    )


def download(language: str, exports: Path) -> None:
    """Download the files that are not in the directory yet."""
    exports.mkdir(parents=True, exist_ok=True)
    for name in export_names(language):
        if not (exports / name).is_file():
            address = f"{EXPORTS}/{name.partition('_')[0].partition('-')[0]}/{name}"
            print(f"downloading {address}", flush=True)
            with (
                urllib.request.urlopen(address, timeout=60) as reply,  # noqa: S310 - below EXPORTS, which is https
                atomic_path(exports / name) as temporary,
                temporary.open("wb") as file,
            ):
                shutil.copyfileobj(reply, file)


def rows_of(path: Path, fields: int) -> Iterator[list[str]]:
    """Yield the first fields of each line, separated by tabs. Exits if a line has fewer."""
    with bz2.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            row = line.rstrip("\n").split("\t")
            if len(row) < fields:
                sys.exit(f"{path}:{number}: expected {fields} fields separated by tabs, found {len(row)}")
            yield row[:fields]


def write_pairs(language: str, exports: Path, project: Path) -> int:
    """Write linked sentences to ``pairs.tsv`` and their authors to ``attribution.tsv``, line by line.

    Pairs are in the order of their numbers, so the same export gives the same files. A link to a sentence
    that the export lacks is left out. Returns the number of pairs.
    """
    foreign, english, links = (exports / name for name in export_names(language))
    linked = sorted({(int(one), int(other)) for one, other in rows_of(links, 2)})
    wanted = {one for one, _ in linked}, {other for _, other in linked}
    sides = [
        {int(row[0]): row for row in rows_of(path, 4) if int(row[0]) in numbers}
        for path, numbers in zip((foreign, english), wanted, strict=True)
    ]
    pairs = [(one, other) for one, other in linked if one in sides[0] and other in sides[1]]
    with (
        atomic_path(project / "pairs.tsv") as texts,
        atomic_path(project / "attribution.tsv") as authors,
        texts.open("w", encoding="utf-8", newline="\n") as text_file,
        authors.open("w", encoding="utf-8", newline="\n") as author_file,
    ):
        author_file.write("line\tsource_id\tsource_author\treference_id\treference_author\n")
        for line, (one, other) in enumerate(pairs, start=1):
            source, reference = sides[0][one], sides[1][other]
            text_file.write(f"{source[2]}\t{reference[2]}\n")
            author_file.write(f"{line}\t{one}\t{source[3]}\t{other}\t{reference[3]}\n")
    return len(pairs)


def run(project: Path, *command: str) -> str:
    """Run a command in the project, show what it prints and return it. Exits if it fails."""
    said = []
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed; run the same command again to resume")
    return "".join(said)


def configure(language: str, project: Path, choices: list[str]) -> None:
    """Make a project that reads the pairs and states their license."""
    source = {
        "name": "tatoeba",
        "license": "CC-BY-2.0-FR",
        "format": "tsv",
        "path": "pairs.tsv",
        "columns": {"source_text": 0, "reference": 1},
    }
    path = project / "configs" / "corpus" / "tatoeba.yaml"
    path.write_text(yaml.safe_dump({"ingest": {"sources": [source]}}, sort_keys=False), encoding="utf-8")
    code = two_letters(language) or language
    named = (
        f"nmt.source_language={code}",
        "publish.name=Paraphrases from Tatoeba",
        "publish.license=cc-by-2.0",
    )
    run(project, "paraforge", "configure", "corpus=tatoeba", *CHOICES, *named, *choices)


def build(project: Path) -> dict[str, float]:
    """Run every stage; return the seconds of those that ran in this call."""
    stages = yaml.safe_load((project / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    seconds = {}
    for stage in stages:
        started = time.monotonic()
        if "Running stage '" in run(project, "dvc", "repro", "--single-item", stage):
            seconds[stage] = round(time.monotonic() - started, 1)
    return seconds


def record(project: Path, exports: Path, language: str, pairs: int, seconds: dict[str, float]) -> None:
    """Write ``record.json``: inputs, counts, scores and times of the run, and the SHA-256 of each output."""
    path = project / RECORD
    before = read_json(path)["seconds"] if path.is_file() else {}
    files = [file for name in OUTPUTS for file in sorted(files_below(project / name))]
    content: dict[str, Any] = {
        "paraforge": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "pairs": pairs,
        "inputs": {name: sha256_file(exports / name) for name in export_names(language)},
        "seconds": {**before, **seconds},
        "metrics": {one.stem: read_json(one) for one in sorted((project / "metrics").glob("*.json"))},
        "outputs": {file.relative_to(project).as_posix(): sha256_file(file) for file in files},
    }
    write_json(path, content)


def compare(mine: Path, other: Path) -> list[str]:
    """Return how two records differ, a line for each input, count and output."""
    first, second = read_json(mine), read_json(other)
    said = []
    for kind in ("inputs", "outputs"):
        for name in sorted({*first[kind], *second[kind]}):
            if first[kind].get(name) != second[kind].get(name):
                said.append(f"{kind}: {name} differs")
    if first["pairs"] != second["pairs"]:
        said.append(f"pairs: {first['pairs']:,} here, {second['pairs']:,} there")
    return said


def main(arguments: list[str] | None = None) -> None:
    """Build, or compare two records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("project", type=Path, help="directory to build in; run again to resume")
    parser.add_argument("choices", nargs="*", help="choices for 'paraforge configure' that differ")
    parser.add_argument("--language", default="ces", help="Tatoeba's code of the foreign language")
    parser.add_argument("--exports", type=Path, help="directory of the exports (default: PROJECT-exports)")
    parser.add_argument("--compare", type=Path, help="somebody's record.json: say what differs, and exit")
    given = parser.parse_args(arguments)
    project = given.project.resolve()
    if given.compare is not None:
        differing = compare(project / RECORD, given.compare)
        print("\n".join(differing) or "the same inputs and outputs")
        sys.exit(1 if differing else 0)
    exports = (given.exports or project.with_name(f"{project.name}-exports")).resolve()
    download(given.language, exports)
    if not (project / "dvc.yaml").is_file():
        run(Path.cwd(), "paraforge", "init", str(project))
    pairs = write_pairs(given.language, exports, project)
    print(f"{pairs:,} pairs", flush=True)
    configure(given.language, project, given.choices)
    seconds = build(project)
    record(project, exports, given.language, pairs, seconds)
    run(project, "paraforge", "summary")
    print(f"{project / RECORD}: what a second run can be compared with")


if __name__ == "__main__":
    main()
