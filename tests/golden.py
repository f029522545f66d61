"""What every step gives on a small corpus, to compare with what it gave; see ``python -m tests.golden``.

Texts, whole numbers and truth values are kept as a hash, floating-point columns by mean and deviation, as the
last digits differ from machine to machine.
"""

import csv
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyarrow import feather
from safetensors.numpy import load_file

from paraforge import versions
from paraforge.base.parsing.parse import parse_sentences
from paraforge.base.shards.libraries import own_versions
from paraforge.base.shards.resources import Resources
from paraforge.translation.models.checkpoint import load_checkpoint
from paraforge.translation.training.stage import build_nmt
from tests.here import inside, run_stage
from tests.products.triplets.corpora import mine, publish
from tests.project import ROOT, make_project, read_parameters, stage_names, write_parameters
from tests.translation.models.tiny import bitext
from tests.translation.training.test_binarization import write_shards
from tests.translation.training.test_training import parameters

GOLDEN = Path(__file__).with_name("golden.json")


def describe(directory: Path) -> dict[str, Any]:
    """Describe the content of all files of an output."""
    exact = hashlib.sha256()
    floats: dict[str, list[float]] = {}
    for path in sorted(directory.rglob("*") if directory.is_dir() else [directory]):
        name = path.name if path == directory else str(path.relative_to(directory))
        for column, values in _arrays(path):
            if values.dtype.kind == "f":
                finite = values[np.isfinite(values)].astype(np.float64)
                if finite.size:
                    floats[f"{name} {column}"] = [float(finite.mean()), float(finite.std()), finite.size]
            else:
                exact.update(f"{name} {column} {values.tolist()!r}".encode())
        if path.suffix == ".html":  # without numbers, and hashes that versions of libraries are part of
            page = re.sub(r"<code>[0-9a-f]+</code>|[\d.,]+", "#", path.read_text(encoding="utf-8"))
            exact.update(page.encode())
    return {"exact": exact.hexdigest(), "floats": floats}


def _arrays(path: Path) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    if path.suffix in (".parquet", ".arrow"):
        is_arrow = path.suffix == ".arrow"
        table = feather.read_table(path) if is_arrow else pq.read_table(path, partitioning=None)
        for name in table.column_names:
            column = table[name]
            kind = np.float64 if pa.types.is_floating(column.type) else object
            yield name, np.array(column.to_pylist(), dtype=kind)
    elif path.suffix == ".npy":
        yield "", np.load(path, allow_pickle=False)
    elif path.suffix == ".safetensors":
        yield from sorted(load_file(path).items())
    elif path.suffix == ".pt":
        # Not their values: Adam makes the rounding of a gradient that is zero (keys' biases) a whole step.
        weights = load_checkpoint(path)["model"]
        yield "", np.array(sorted(f"{name} {tuple(tensor.shape)}" for name, tensor in weights.items()))
    elif path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file)):
                for name in ("update", "epoch", "target_tokens", "train_loss", "valid_loss"):
                    yield f"{number} {name}", np.array([float(row[name])])
    elif path.name.startswith("dict."):
        yield "", np.array(path.read_text(encoding="utf-8").split())


def current(last: str | None = None) -> dict[str, dict[str, Any]]:
    """Return each stage's version and output, up to the stage ``last`` if it is given."""
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    found = {}
    with tempfile.TemporaryDirectory() as place:
        project = make_project(
            Path(place) / "project",
            "embeddings.models.word.encoder.dimension=8",
            "lexicon.minimum_pairs=1",
            "triplets=default",
            pairs=150,
        )
        with inside(project):
            for name in stage_names():
                run_stage(name)
                outputs = [out for out in stages[name]["outs"] if isinstance(out, str)]
                paths = [Path(out.replace("${item.name}", "word")) for out in outputs]
                if name != "nmt":  # the project has no model; see below
                    found[name] = {
                        "version": getattr(versions, name.upper()),
                        "deps": [
                            dep.split("/")[1] for dep in stages[name]["deps"] if not dep.startswith("inputs")
                        ],
                        "outputs": {path.name: describe(path) for path in paths},
                    }
                if name == last:
                    return found
            write_shards(Path("bitext"), [(source, reference, None) for source, reference in bitext(300)])
            one_thread = Resources(threads=1, devices=["cpu"], work=Path("nmt-work"))
            build_nmt(parameters(), Path("bitext"), Path("model"), Path("nmt.csv"), one_thread)
            outputs_of_nmt = {"nmt": describe(Path("model")), "nmt.csv": describe(Path("nmt.csv"))}
            found["nmt"] = {
                "version": versions.NMT,
                "deps": [],
                "outputs": outputs_of_nmt,
                "libraries": {
                    name: number.split("+")[0]
                    for name, number in own_versions(("sentencepiece", "torch")).items()
                },
            }
            # No triplet is left of the project's few pairs.
            mine(publish(Path("pairs")), Path("triplets"))
            found["triplets"]["outputs"]["triplets_made"] = describe(Path("triplets"))
            # By default nothing is trained: here the word vectors of the corpus, and what they score.
            content = read_parameters(project)
            content["paragram"]["built_in"] = None
            write_parameters(project, content)
            for name, output in (("paragram", "models/paragram"), ("score", "data/scored")):
                run_stage(name)
                found[name]["outputs"][f"{Path(output).name}_trained"] = describe(Path(output))
            found["score"]["deps"].append("paragram_trained")
            tree = "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (PRP it))) (. .))"
            lines = f"the dog sees it.\t{tree}\nrain.\t(FRAG (NP (NN rain)) (. .))\n"
            Path("trees.txt").write_text(lines, encoding="utf-8")
            sentences = pa.array(["the dog sees it.", "rain.", "none of these"])
            parses = parse_sentences([sentences], "trees.txt", Resources(work=Path("parses-work"), workers=1))
            pq.write_table(pa.table({"tree": parses.of(sentences)}), "parses.parquet")
            outputs_of_parses = {"parses.parquet": describe(Path("parses.parquet"))}
            found["parses"] = {"version": versions.PARSES, "deps": [], "outputs": outputs_of_parses}
    return found


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Return whether two outputs have the same content, up to the last digits."""
    if first["exact"] != second["exact"] or first["floats"].keys() != second["floats"].keys():
        return False
    return all(
        np.allclose(values, second["floats"][name], rtol=2e-3, atol=1e-5)
        for name, values in first["floats"].items()
    )


def made_otherwise(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Return whether other library versions made a stage's output: sentencepiece 0.2.3 learns other pieces
    than 0.2.2."""
    return bool(first.get("libraries") != second.get("libraries"))


def changes(now: dict[str, dict[str, Any]], before: dict[str, dict[str, Any]]) -> list[str]:
    """Say what to do about changed stages, among those made by the same libraries."""
    outputs = {name: output for stage in before.values() for name, output in stage["outputs"].items()}
    changed = {
        name
        for stage in now.values()
        for name, output in stage["outputs"].items()
        if name not in outputs or not same(output, outputs[name])
    }
    found = []
    for name, stage in now.items():
        old = before.get(name)
        if old is None or old["version"] != stage["version"]:
            found.append(f"{name} is new or has another number: run 'python -m tests.golden'")
        elif made_otherwise(stage, old):
            continue
        elif changed & stage["outputs"].keys() and changed & {*stage["deps"]}:
            found.append(f"{name} has another input: run 'python -m tests.golden'")
        elif changed & stage["outputs"].keys():
            found.append(
                f"{name} gives another output for the same input: raise {name.upper()} in versions.py"
            )
    return found


if __name__ == "__main__":
    content = current()
    if GOLDEN.exists():
        refused = [line for line in changes(content, json.loads(GOLDEN.read_text())) if "raise" in line]
        if refused:
            raise SystemExit("\n".join(refused))
    GOLDEN.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
