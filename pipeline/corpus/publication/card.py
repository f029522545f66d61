"""The dataset card of a published corpus, with the front matter that the Hugging Face Hub reads."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from paraforge.base.errors import InputError, describing
from paraforge.base.files import sha256_file, write_whole
from paraforge.base.logs import counted
from paraforge.base.markdown import Code, clip, code, escape, table
from paraforge.base.shards.schema import SCHEMA_VERSION
from paraforge.base.shards.store import ShardRecord, write_index
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.columns import AVERAGED, LABELS
from paraforge.corpus.publication.manifest import KEPT, TRAIN, Manifest
from paraforge.corpus.publication.parameters import NOT_STATED, PublishParameters
from paraforge.corpus.publication.signature import is_given, is_round_trip
from paraforge.corpus.publication.statistics import Published
from paraforge.corpus.publication.verdict_words import verdict_words
from paraforge.corpus.selection.fate import Counts, total_of
from paraforge.corpus.selection.parameters import explain_reasons
from paraforge.versions import PUBLISH

# The Hub expects README.md, but readers of a Parquet directory would try to read such a file as Parquet.
CARD_NAME = "_README.md"
# Describes the splits to `datasets` if the card is not named README.md.
CONFIGS_NAME = ".huggingface.yaml"
# Powers of ten from a thousand.
_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
# Default languages of a corpus: English from Czech.
_LANGUAGES = ("en", "cs")
_TEMPLATE = Path(__file__).with_name("card.md")
# Types that `datasets` calls by other names than Arrow does.
_TYPES = {"float": "float32", "double": "float64"}


def size_category(rows: int) -> str:
    """Return the Hub's size category, e.g. ``10K<n<100K``."""
    passed = min(max(0, len(str(rows)) - 3), len(_SIZES))
    least = f"{_SIZES[passed - 1]}<" if passed else ""
    return f"{least}n<{_SIZES[passed]}" if passed < len(_SIZES) else f"n>{_SIZES[-1]}"


def write_description(
    directory: Path, manifest: Manifest, statistics: Published, parameters: PublishParameters
) -> None:
    """Write manifest, card, configurations and ``_shards.json`` beside the files of a dataset."""
    manifest.write(directory)
    write_whole(directory / CARD_NAME, dataset_card(manifest, statistics, parameters))
    write_whole(directory / CONFIGS_NAME, yaml_text(file_configs(manifest)))
    documents = {name: sha256_file(directory / name) for name in (CARD_NAME, CONFIGS_NAME)}
    index = {"step": "publish", "version": PUBLISH, "schema_version": SCHEMA_VERSION, "documents": documents}
    write_index(directory, [ShardRecord(file.path, file.rows, file.sha256) for file in manifest.files], index)


def describe(corpus: Path) -> str:
    """Return the text of a published corpus' card in Markdown, from its title on, without front matter.

    Text from the corpus is escaped in it, so the summary and the report can show it.

    Raises InputError if the directory has no card or the card has no front matter.
    """
    return read_card(corpus)[1]


def card_path(corpus: Path) -> Path:
    """Return the path of a corpus' card, also in a copy from the Hub. Raises InputError if there is none."""
    path = next((corpus / name for name in (CARD_NAME, "README.md") if (corpus / name).is_file()), None)
    if path is None:
        raise InputError("no such file", corpus / CARD_NAME, remedy="Publish the corpus again.")
    return path


def read_card(corpus: Path) -> tuple[str, str]:
    """Return a card's front matter, which is YAML, and its text. Raises InputError as :func:`describe`."""
    path = card_path(corpus)
    with describing(path, "not the card of a corpus", "Publish the corpus again."):
        text = path.read_text(encoding="utf-8")
        _, front, body = re.split(r"^---\n", text, maxsplit=2, flags=re.MULTILINE)
    return front, body.lstrip("\n")


def front_matter(manifest: Manifest, parameters: PublishParameters) -> dict[str, Any]:
    """Return the card's metadata as the Hub reads it, including the pivots' languages."""
    pivots = [name for pivot in manifest.pivots for name in pivot.split("+")]
    languages = list(dict.fromkeys([*(parameters.languages or _LANGUAGES), *pivots]))
    tags, creators, is_pretranslated = list(parameters.tags), ["found"], is_given(manifest.steps)
    if is_pretranslated:  # the corpus does not contain a foreign side
        languages = languages[:1]
        tags = [tag for tag in tags if tag != "back-translation"]
    else:
        tags = list(dict.fromkeys([*tags, "synthetic"]))
        creators.append("machine-generated")
    # Pairs of two translations have the sources A/B.
    names = (source.split("/") if pivots else [source] for source in manifest.sources)
    sources = sorted({name for both in names for name in both})
    return {
        "pretty_name": manifest.name,
        "license": parameters.license,
        "language": languages,
        "multilinguality": ["translation"] if len(languages) > 1 else ["monolingual"],
        "language_creators": creators,
        **({} if is_pretranslated else {"annotations_creators": ["machine-generated"]}),
        "source_datasets": [f"extended|other-{source}" for source in sources],
        "size_categories": [size_category(manifest.rows)],
        "task_categories": ["sentence-similarity", "text-generation"],
        "tags": tags,
        **file_configs(manifest),
    }


def file_configs(manifest: Manifest) -> dict[str, Any]:
    """Return the splits' files and their columns, as the Hub and ``datasets`` read them."""
    return configs({"default": (_splits(manifest), manifest.columns)}, manifest.publication)


def _splits(manifest: Manifest) -> dict[str, str]:
    """Return the pattern of the files of each split."""
    kept = manifest.content == KEPT
    return {name if kept else "rejected": _pattern(name) for name in manifest.splits or [TRAIN]}


def _pattern(split: str) -> str:
    """Return the pattern of a split's files."""
    return f"{'shard' if split == TRAIN else split}-*.parquet"


def configs(
    named: Mapping[str, tuple[Mapping[str, str], Sequence[Mapping[str, str]]]], content: str
) -> dict[str, Any]:
    """Return configurations as the Hub and ``datasets`` read them: for each, the file pattern of each split
    and the columns (``name`` and Arrow's ``type``).

    content: identifies the rows. ``datasets`` reuses rows from its cache if the directory's name and these
    values are the same.
    """
    return {
        "configs": [
            {
                "config_name": name,
                "description": content,
                "data_files": [{"split": split, "path": files} for split, files in splits.items()],
            }
            for name, (splits, _) in named.items()
        ],
        "dataset_info": [
            {
                "config_name": name,
                "features": [{"name": column["name"], **_feature(column["type"])} for column in columns],
            }
            for name, (_, columns) in named.items()
        ],
    }


def _feature(kind: str) -> dict[str, str]:
    """Return an Arrow type as `datasets` names it: ``{"dtype": "float32"}``, ``{"list": "string"}``."""
    if listed := re.fullmatch(r"list<\w+: (\w+)>", kind):
        return {"list": _TYPES.get(listed[1], listed[1])}
    return {"dtype": _TYPES.get(kind, kind)}


def dataset_card(manifest: Manifest, statistics: Published, parameters: PublishParameters) -> str:
    """Return the text of the card. Everything from a user or a corpus is escaped."""
    metadata = front_matter(manifest, parameters)
    kept = manifest.content == KEPT
    verdict = verdict_words(manifest.verdict, manifest.counts.kept) if kept else []
    figures = [_bands(statistics), _means(statistics), _examples(statistics)] if kept else []
    licenses = [[source, manifest.licenses.get(source, NOT_STATED)] for source in sorted(manifest.sources)]
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    text = template.substitute(
        name=escape(manifest.name),
        introduction=_introduction(manifest, metadata["language"]),
        verdict=escape(" ".join(verdict)),
        signature=code(manifest.signature),
        # Some readers need the directory, others the pattern.
        loads="\n".join(f'{split} = load_dataset("PATH", split="{split}")' for split in _splits(manifest)),
        files=_pattern(TRAIN),
        counts=_counts(manifest),
        figures="\n\n".join(figure for figure in figures if figure),
        columns=table(
            ["column", "type", "meaning"],
            [[Code(c["name"]), c["type"], c["description"]] for c in manifest.columns],
        ),
        license=code(parameters.license),
        licenses=table(["source", "license"], licenses),
        version=manifest.version,
        schema_version=manifest.schema_version,
        origin=_origin(manifest),
    )
    return f"---\n{yaml_text(metadata)}---\n\n" + re.sub(r"\n{3,}", "\n\n", text)


def _introduction(manifest: Manifest, languages: Sequence[str]) -> str:
    if manifest.content != KEPT:
        return (
            f"{manifest.rows:,} pairs that were rejected (`rejected` names the first filter that rejected "
            "the pair) or could not be translated (`failed` says why). They are kept so that every row that "
            "came in can be looked up; they are not part of the corpus."
        )
    if is_given(manifest.steps):
        content = (
            f"{counted(manifest.rows, 'paraphrase pair')}: the sentences `reference` and `translation` were "
            "given as paraphrases of each other, and have scores and lineage here."
        )
    else:
        side = "English" if languages[0] == "en" else code(languages[0])
        origin = (
            f"the {side} side of parallel text (`reference`) and a machine translation of its foreign side"
        )
        if is_round_trip(manifest.steps):
            origin = (
                "a sentence (`reference`), its machine translation into another language (`source_text`) and "
                "the machine translation of that back"
            )
        content = (
            f"{counted(manifest.rows, 'paraphrase pair')} made by back-translation: each pair is {origin} "
            "(`translation`), with scores and lineage."
        )
    return content + "".join(f" {escape(sentence)}" for sentence in lineage_words(manifest))


def lineage_words(manifest: Manifest) -> list[str]:
    """Return sentences about the corpus' pivots and splits, if it has any."""
    sentences = []
    if manifest.pivots:
        sentences.append("The column pivot names the language of the foreign side.")
    if pairs := [pivot for pivot in sorted(manifest.pivots) if "+" in pivot]:
        named = " or ".join(pairs)
        sentences.append(f"Where it is {named}, both sides are translations of one reference.")
    if held := [f"{name} has {rows:,}" for name, rows in manifest.splits.items() if name != TRAIN]:
        sentences.append(f"Of the pairs, {', '.join(held)}; no two splits share a sentence.")
    return sentences


def _counts(manifest: Manifest) -> str:
    tables = [_count_table("source", manifest.sources)]
    if manifest.pivots:
        tables.append(_count_table("pivot", manifest.pivots))
    explained = explain_reasons(manifest.steps)
    reasons = [
        ["rejected", name, f"{number:,}", explained.get(name, "")]
        for name, number in manifest.counts.rejected.most_common()
    ]
    reasons += [["failed", name, f"{number:,}", ""] for name, number in manifest.counts.failed.most_common()]
    head = ["", "reason", "pairs", "meaning"]
    return "\n\n".join([*tables, table(head, reasons, right=[2]) if reasons else "Nothing was rejected."])


def _count_table(what: str, named: Mapping[str, Counts]) -> str:
    rows = []
    for name, counts in [*sorted(named.items()), *[(f"all {what}s", total_of(named))] * (len(named) > 1)]:
        numbers = (counts.rows_in, counts.kept, counts.rejected.total(), counts.failed.total())
        share = 100 * counts.kept / max(1, counts.rows_in)
        rows.append([name, *(f"{number:,}" for number in numbers), f"{share:.1f}"])
    return table([what, "rows in", "kept", "rejected", "failed", "kept %"], rows, right=range(1, 6))


def _bands(statistics: Published) -> str:
    cells = ("{band}", "{pairs:,}", "{overlap_3:.2f}", "{kept:,}", "{kept_overlap_3:.2f}")
    rows = [[cell.format_map(band) for cell in cells] for band in statistics.bands()]
    head = ["paraphrase score", "scored pairs", "trigram overlap", "kept pairs", "trigram overlap"]
    shown = table(head, rows, right=range(1, 5))
    return f"## Score bands\n\nMean trigram overlap of the pairs in a band.\n\n{shown}"


def _means(statistics: Published) -> str:
    means = statistics.means()
    rows = [[LABELS[name], f"{means[name]:.3f}"] for name in AVERAGED if name in means]
    return f"## Means over kept pairs\n\n{table(['', 'mean'], rows, right=[1])}" if rows else ""


def _examples(statistics: Published) -> str:
    pairs = [pair for band in statistics.examples for pair in band]
    if not pairs:
        return ""
    rows = [
        [f"{pair['paraphrase_score']:.2f}", clip(pair["reference"]), clip(pair["translation"])]
        for pair in pairs
    ]
    head = ["score", "reference", "translation"]
    return f"## Examples\n\nDrawn at random from each score band.\n\n{table(head, rows, right=[0])}"


def _origin(manifest: Manifest) -> str:
    rows = [
        [name, what, Code(str(digest)[:16])]
        for name, step in manifest.steps.items()
        for what, digest in sorted((step.get("fingerprints") or {}).items())
        if digest
    ]
    return table(["step", "file", "fingerprint"], rows) if rows else "No model was used."
