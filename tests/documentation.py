"""Code blocks of the documentation, in order, and the files that they need."""

import gzip
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.project import ROOT
from tests.sample import generate

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "experiments" / "README.md"] + [
    ROOT / "docs" / name
    for section in yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    for entry in section.values()
    for name in ([entry] if isinstance(entry, str) else [page for item in entry for page in item.values()])
]
LANGUAGES = {"sh", "python", "sql", "yaml", "text", "toml"}
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>not run|file): (?P<say>.*?) -->\n)?"
    r"^(?P<fence>```+)(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        line: of the opening fence, counted from 1.
        language: what follows the fence.
        text: what is in it.
        not_run: why the tests do not run it; empty where they do.
        file: where a reader is told to write it; empty where not.
    """

    page: Path
    line: int
    language: str
    text: str
    not_run: str
    file: str


def blocks(page: Path) -> list[Block]:
    """Return all fenced blocks of a page."""
    content = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(content):
        mark, say = match["mark"], match["say"] or ""
        line = content.count("\n", 0, match.start("fence")) + 1
        found.append(
            Block(
                page,
                line,
                match["language"],
                match["text"],
                say if mark == "not run" else "",
                say if mark == "file" else "",
            )
        )
    return found


def write_readers_files(project: Path) -> None:
    """Write the files that the pages expect from a reader: a bitext, sentences, test sets, word vectors, a
    novel."""
    pairs = list(generate(600))
    czech, english = [pair.cs for pair in pairs], [pair.reference for pair in pairs]

    def lines(name: str, texts: list[str]) -> None:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = "".join(f"{text}\n" for text in texts).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)

    lines("data/raw/my.cs.gz", czech[:100])
    lines("data/raw/my.en.gz", english[:100])
    lines(
        "data/raw/more.tsv", [f"{en}\t{cs}" for en, cs in zip(english[100:200], czech[100:200], strict=True)]
    )
    german = [f"Der alte Mann aus dem Dorf hat heute {number} Äpfel gekauft." for number in range(100)]
    lines("news.en-de.tsv", [f"{en}\t{de}" for en, de in zip(english[200:300], german, strict=True)])
    lines("news.cs", czech[:20])
    lines("sentences.txt", english[:50])
    lines("pairs.tsv", [f"{first}\t{second}" for first, second in itertools.pairwise(english)])
    # 5: the same sentence; 3: half of it; 0: another one.
    scored = [f"5\t{text}\t{text.lower()}" for text in english[300:330]]
    scored += [
        f"3\t{text}\t{' '.join(text.split()[: len(text.split()) // 2 + 1])}" for text in english[330:360]
    ]
    scored += [
        f"0\t{first}\t{second}" for first, second in zip(english[360:390], english[400:430], strict=True)
    ]
    for name in ("2012.sample", "2014.sample", "2017.sample"):
        lines(f"sts/{name}.tsv", scored)
    judged = (("car", "automobile", 9), ("big", "large", 9), ("car", "house", 1), ("dog", "cat", 3))
    header = "word1\tword2\tPOS\tSimLex999"
    lines("SimLex-999.txt", [header, *(f"{first}\t{second}\tN\t{score}" for first, second, score in judged)])
    entries = [f"[NN] ||| {first} ||| {second} ||| PPDB2.0Score={score}" for first, second, score in judged]
    lines("ppdb-2.0-xxxl-lexical.gz", entries)
    words = sorted({word.strip(".,?!").lower() for text in english for word in text.split()} - {""})
    lines("vectors.txt", [f"{word} {len(word)} {ord(word[0]) % 7} {ord(word[-1]) % 5}" for word in words])
    lines("synonyms.txt", ["big large", "car automobile"])
    lines("antonyms.txt", ["big small"])
    translated = pa.table({"sentence": czech[:20], "hypotheses": [[text] for text in english[:20]]})
    pq.write_table(translated, project / "translations.parquet")
    lines("counts.txt", [f"{word} {1000 // (number + 1) + 1}" for number, word in enumerate(words)])
    lines("novel.txt", english)
    for part in ("train", "dev", "test"):
        rows = [f"{number % 2}\t{text}" for number, text in enumerate(english[:120])]
        lines(f"transfer/SST_binary.{part}.tsv", rows)


def merged(first: Any, second: Any) -> Any:
    """Merge nested parameters; the values of ``second`` win."""
    if isinstance(first, dict) and isinstance(second, dict):
        return {**first, **{key: merged(first.get(key), value) for key, value in second.items()}}
    return second
