"""Files of triplets: `_triplets.json`, triplets, lineage, clusters, and the card.

Readers of a directory of Parquet files skip names that begin with an underscore: they find only triplets.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from paraforge.base.errors import InputError
from paraforge.base.files import hash_json, write_whole
from paraforge.base.markdown import code, escape, table
from paraforge.base.shards.schema import COLUMNS
from paraforge.base.yaml_text import read_yaml_text, yaml_text
from paraforge.corpus.publication.card import CARD_NAME, CONFIGS_NAME, configs, read_card, size_category
from paraforge.corpus.publication.datasets import Dataset
from paraforge.corpus.publication.manifest import TRAIN, describe_columns

FORMAT = 1
MANIFEST = "_triplets.json"
PARTS = ("triplets", "_lineage", "_clusters")


def file_name(part: str, number: int) -> str:
    """Return the name of a file, for example ``_lineage-00000.parquet``."""
    return f"{part}-{number:05d}.parquet"


def numbered(name: str, negatives: int) -> list[str]:
    """Return the column names of the negatives: ``negative``, or ``negative_1`` to ``negative_N``."""
    return [name] if negatives == 1 else [f"{name}_{number + 1}" for number in range(negatives)]


def _field(name: str, kind: pa.DataType, description: str, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"description": description})


def schemas(negatives: int, lineage: Sequence[str]) -> dict[str, pa.Schema]:
    """Return the schema of each of :data:`PARTS`.

    Trainers read the columns of triplets by position, so none may be added.

    negatives: number per anchor. lineage: columns of the corpus that identify a pair.
    """
    origin = [COLUMNS[name] for name in lineage]
    cluster = _field("cluster", pa.int64(), "number of the first row of the corpus that it is connected with")
    triplets = [
        _field("anchor", pa.string(), "the reference of a pair"),
        _field("positive", pa.string(), "its translation"),
        *(
            _field(name, pa.string(), "a translation of another cluster")
            for name in numbered("negative", negatives)
        ),
    ]
    of_triplets = [
        _field("row", pa.int64(), "number of the pair in the corpus, from 0"),
        *origin,
        cluster,
        _field("positive_cosine", pa.float32(), "of the anchor and the positive"),
        *(
            _field(name, pa.int64(), "row of the corpus that the negative is the translation of")
            for name in numbered("negative_row", negatives)
        ),
        *(
            _field(name, pa.float32(), "of the anchor and the negative")
            for name in numbered("negative_cosine", negatives)
        ),
    ]
    of_rows = [
        *origin,
        cluster,
        _field("left_out", pa.string(), "why the pair gives no triplet; null if it does", nullable=True),
    ]
    return dict(zip(PARTS, map(pa.schema, (triplets, of_triplets, of_rows)), strict=True))


_USE = """## Use

```python
from datasets import load_dataset
triplets = load_dataset("parquet", data_files="triplets-*.parquet", split="train")
# or load_dataset(PATH, split="train"), a directory or a name on the Hub; name="lineage", name="clusters"
```"""


def write_card(
    directory: Path,
    manifest: Mapping[str, Any],
    corpus: Dataset,
    metadata: Mapping[str, Any],
    schemas: Mapping[str, pa.Schema],
) -> None:
    """Write `_README.md` and `.huggingface.yaml`.

    manifest: content of `_triplets.json`. corpus: the corpus in which triplets were mined.
    metadata: license and languages from the corpus' card. schemas: schemas of the files.
    """
    names = ("default", *(part.removeprefix("_") for part in PARTS[1:]))
    columns = {name: describe_columns(schemas[part]) for name, part in zip(names, PARTS, strict=True)}
    patterns = {name: f"{part}-*.parquet" for name, part in zip(names, PARTS, strict=True)}
    of_files = configs(
        {name: ({TRAIN: patterns[name]}, columns[name]) for name in names}, hash_json(manifest)[:16]
    )
    title = f"{corpus.manifest.name if corpus.manifest else corpus.directory.name}: triplets"
    front = {
        "pretty_name": title,
        **metadata,
        "size_categories": [size_category(manifest["triplets"])],
        "task_categories": ["sentence-similarity", "feature-extraction"],
        "tags": ["triplets", "hard-negatives", "sentence-transformers"],
        **of_files,
    }
    parameters = manifest["parameters"]
    about = (
        f"{manifest['triplets']:,} triplets: a sentence, its paraphrase, and {parameters['negatives']} of "
        f"other clusters of paraphrases (the most similar ones with a cosine below "
        f"{1 - parameters['margin']:g} times that of the paraphrase), by {code(manifest['encoder'])}."
    )
    if corpus.manifest:
        about += f"\n\nSignature of the corpus: {code(corpus.manifest.signature)}"
    numbers = {
        "triplets": manifest["triplets"],
        **{f"left out: {reason}": number for reason, number in manifest["left_out"].items()},
        "clusters of paraphrases": manifest["clusters"],
        "pairs of the largest cluster": manifest["largest_cluster"],
    }
    counted = table(["", "pairs"], [[name, f"{n:,}"] for name, n in numbers.items()], right=[1])
    counts = f"## Counts\n\nRows in = triplets + left out: {manifest['rows']:,}.\n\n{counted}"
    parts = [f"# {escape(title)}", about, _USE, counts]
    for name in names:
        rows = [[column["name"], column["type"], column["description"]] for column in columns[name]]
        heading = "Columns" if name == "default" else f"Columns of {name}"
        parts.append(f"## {heading}\n\n`{patterns[name]}`\n\n{table(['column', 'type', 'meaning'], rows)}")
    body = "\n\n".join(parts)
    write_whole(directory / CARD_NAME, f"---\n{yaml_text(front)}---\n\n{body}\n")
    write_whole(directory / CONFIGS_NAME, yaml_text(of_files))


def card_metadata(corpus: Path) -> dict[str, Any]:
    """Return the license and the languages from a corpus' card.
    Raises InputError if the corpus has no card, or the card cannot be read."""
    try:
        metadata = read_yaml_text(read_card(corpus)[0])
        return {name: metadata[name] for name in ("license", "language") if name in metadata}
    except (TypeError, yaml.YAMLError) as error:
        raise InputError(f"the metadata of its card cannot be read: {error}", corpus) from error
