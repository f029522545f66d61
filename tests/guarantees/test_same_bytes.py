"""The result of a stage depends only on its input and its own parameters."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.guarantees.stages import STAGES, change, copy, make_finished, outputs, remove, result
from tests.here import inside, run_stage
from tests.project import made_once

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
# The bytes of these depend on the number of threads: gradients are summed in another order.
TRAINED = ("nmt", "paraphraser")

# Values that change a stage's result, for each stage; of the first, nothing else than that stage's output.
CHANGES: dict[str, list[dict[str, Any]]] = {
    "ingest": [
        {"ingest.cleaning.max_words": 7},
        {"ingest.cleaning.duplicates": False},
        {"ingest.cleaning.max_characters": 40},
    ],
    "nmt": [{"nmt.training.learning_rate": 0.02}, {"nmt.validation.held_out": 25}],
    "translate": [
        {"translate.fake.seed": 2},
        {"translate.fake.defects": 0.5},
        {"translate.nbest": 2},
        {"translate.maximum_target_tokens": 6},
        {"translate.maximum_source_tokens": 6},
    ],
    "paragram": [{"paragram.training.margin": 0.1}, {"paragram.dimension": 8}, {"paragram.training.seed": 2}],
    "score": [{"score.identify_language": False}, {"score.languages": ["en", "de"]}],
    "select": [
        {"select.filters.length.maximum": 6},
        {"select.filters.paraphrase_score.minimum": 0.9},
        {"select.filters.near": {"kind": "near_duplicates"}, "select.order": ["near", "length"]},
    ],
    "publish": [
        {"publish.name": "Another corpus"},
        {"publish.group_score": 0.95},
        {"publish.splits": {"test": 20}},
    ],
    "lexicon": [{"lexicon.filters.minimum_score": 0.95}, {"lexicon.pseudo_count": 5.0}],
    "embeddings": [
        {"embeddings.models.word.training.margin": 0.1},
        {"embeddings.models.word.training.mega_batch": 1},
    ],
    "paraphraser": [{"paraphraser.training.learning_rate": 0.02}],
    "triplets": [{"triplets.margin": 0.2}, {"triplets.negatives": 2}],
    "statistics": [{"statistics.sample": 50}],
    "report": [{"report.title": "Another title"}, {"report.entries": 1}],
}
CASES = [
    pytest.param(stage, changed, id=f"{stage}-{next(iter(changed))}")
    for stage, several in CHANGES.items()
    for changed in several
]


def test_stages_have_parameter_changes() -> None:
    assert not CHANGES.keys() ^ STAGES.keys(), "CHANGES needs values of each stage that change its result"


@pytest.mark.parametrize(("stage", "changed"), CASES)
def test_changed_parameter_matches_fresh_run(
    finished: Path, tmp_path: Path, stage: str, changed: dict[str, Any]
) -> None:
    """If a key lacked the parameter, the run would reuse the earlier work."""
    after = copy(finished, tmp_path / "after")
    first = copy(finished, tmp_path / "first", work=False)
    for project in (after, first):
        change(project, changed)
        with inside(project):
            run_stage(stage)
    assert result(after, stage) == result(first, stage)
    assert result(after, stage) != result(finished, stage), "the value changes nothing: take another"


@pytest.mark.parametrize("stage", STAGES)
def test_parameters_unknown_to_dvc_change_nothing(finished: Path, tmp_path: Path, stage: str) -> None:
    """DVC reruns a stage only for its own parameters, so the stage must not read others."""
    own = [name for name in STAGES[stage]["params"] if isinstance(name, str)]
    own = [name.replace("${item.name}", "word") for name in own]
    project = copy(finished, tmp_path / "project", work=False)
    remove(project, stage)
    for several in CHANGES.values():
        for changed in several:
            for key, value in changed.items():
                if not any(f"{key}.".startswith(f"{name}.") for name in own):
                    change(project, {key: value})
    change(project, {"resources.batch_tokens": 100})
    if stage not in TRAINED:
        change(project, {"resources.threads": 2})
    with inside(project):
        run_stage(stage)
    assert result(project, stage) == result(finished, stage)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster with three workers."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("stage", STAGES)
def test_three_workers_give_same_bytes_as_one(
    finished: Path, tmp_path: Path, scheduler: str, stage: str
) -> None:
    project = copy(finished, tmp_path / "project", work=False)
    remove(project, stage)
    change(
        project, {"resources.scheduler": scheduler, "resources.workers": 3, "resources.in_process_rows": 0}
    )
    with inside(project):
        run_stage(stage)
    assert result(project, stage) == result(finished, stage)


@pytest.fixture(scope="module")
def other_shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same project with other sizes of shards, files and tasks."""
    sizes = {"ingest.rows_per_shard": 170, "publish.rows_per_file": 130, "translate.sentences_per_task": 77}
    return made_once(tmp_path_factory, "other-shards", lambda path: make_finished(path, sizes))


@pytest.mark.parametrize(
    "stage", [stage for stage in STAGES if stage not in (*TRAINED, "paragram", "report")]
)
def test_other_shard_sizes_hold_same_rows(finished: Path, other_shards: Path, stage: str) -> None:
    compared = 0
    for name in outputs(stage):
        first, second = (_rows(project / name) for project in (finished, other_shards))
        assert first.keys() == second.keys()
        for stem in first:
            assert first[stem].equals(second[stem]), stem
            compared += first[stem].num_rows
    assert compared


def _rows(directory: Path) -> dict[str, pa.Table]:
    """Return all rows of the files of one kind; for other files, their digests."""
    tables: dict[str, list[pa.Table]] = {}
    for path in sorted(directory.glob("*.parquet")):
        tables.setdefault(path.stem.rsplit("-", 1)[0], []).append(pq.read_table(path, partitioning=None))
    found = {stem: pa.concat_tables(parts).combine_chunks() for stem, parts in tables.items()}
    for path in directory.rglob("*.safetensors"):
        found[path.name] = pa.table({"bytes": [path.read_bytes()]})
    return found
