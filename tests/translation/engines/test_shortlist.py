"""CTranslate2 with a shortlist: results, scores, and keys."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.ctranslate2_library import load_ctranslate2
from paraforge.translation.models.model import SHORTLIST_FILE
from paraforge.translation.models.model_file import read_vocabulary
from paraforge.translation.stage.sentences import choose_engine
from tests.translation.engines.tiny_models import listed
from tests.translation.models.tiny import bitext

SENTENCES = [source for source, _ in bitext(60, seed=9, longest=9)]
LISTED = DecodingOptions(beam=5, nbest=3, maximum_target_tokens=40, shortlist=True)


def run(model: Path, options: DecodingOptions, sentences: list[str], threads: int = 1) -> list[Hypotheses]:
    return list(
        open_translator("ctranslate2", model, options, Placement("cpu", threads)).translate(sentences)
    )


@pytest.fixture
def half(tiny_model: Path, tmp_path: Path) -> Path:
    return listed(tiny_model, tmp_path / "half", half=True)


def test_shortlist_of_all_pieces_changes_no_text(tiny_model: Path, tmp_path: Path) -> None:
    plain = run(tiny_model, LISTED.with_changes(shortlist=False), SENTENCES)
    found = run(listed(tiny_model, tmp_path / "all"), LISTED, SENTENCES)
    for first, second in zip(plain, found, strict=True):
        assert {hypothesis.text for hypothesis in first.hypotheses} == {h.text for h in second.hypotheses}


@pytest.mark.parametrize("cap", [40, 4])
def test_shortlist_scores_use_whole_vocabulary(tiny_model: Path, half: Path, cap: int) -> None:
    options = LISTED.with_changes(maximum_target_tokens=cap, length_penalty=0.5)
    translator = open_translator("ctranslate2", half, options, Placement("cpu"))
    scorer = load_ctranslate2().Translator(str(tiny_model / "ctranslate2"), intra_threads=1)
    truncated = 0
    for sentence, result in zip(SENTENCES, translator.translate(SENTENCES), strict=True):
        scores = [hypothesis.score for hypothesis in result.hypotheses]
        assert scores == sorted(scores, reverse=True)
        source = translator.encode([sentence])[0].tokens
        for hypothesis in result.hypotheses:
            (target,) = translator._pieces.encode_target([hypothesis.text])
            if len(target) + (not hypothesis.output_truncated) != hypothesis.tokens:
                continue  # the text is made of other pieces than it was found in
            logs = scorer.score_batch([source], [target], max_input_length=0)[0].log_probs
            assert hypothesis.score == pytest.approx(
                sum(logs[: hypothesis.tokens]) / hypothesis.tokens**0.5, abs=1e-4
            )
            truncated += hypothesis.output_truncated
    assert truncated > 0 or cap == 40


def test_shortlist_excludes_other_pieces(tiny_model: Path, half: Path) -> None:
    plain = run(tiny_model, LISTED.with_changes(shortlist=False), SENTENCES)
    found = run(half, LISTED, SENTENCES)
    assert [result.hypotheses[0].text for result in plain] != [result.hypotheses[0].text for result in found]
    assert run(half, LISTED.with_changes(shortlist=False), SENTENCES) == plain


def test_shortlist_result_does_not_depend_on_batch(tiny_model: Path, tmp_path: Path) -> None:
    """Each source piece allows a different target piece, so sentences that shared a list would differ."""
    model = listed(tiny_model, tmp_path / "own")
    sources, targets = (read_vocabulary(model / "ctranslate2", side) for side in ("source", "target"))
    lines = [f"{source}\t{targets[place % len(targets)]}" for place, source in enumerate(sources)]
    (model / "ctranslate2" / SHORTLIST_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    together = run(model, LISTED, SENTENCES)
    assert run(model, LISTED, SENTENCES, threads=3) == together
    for sentence, result in zip(SENTENCES, together, strict=True):
        (alone,) = run(model, LISTED, [sentence])
        assert [hypothesis.text for hypothesis in alone.hypotheses] == [
            hypothesis.text for hypothesis in result.hypotheses
        ]
        # Scores are computed in batches, whose sums are rounded differently.
        scores = [hypothesis.score for hypothesis in result.hypotheses]
        assert [hypothesis.score for hypothesis in alone.hypotheses] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize(
    "case",
    [
        ("ctranslate2", "int8", "auto", True, "cpu", True),
        ("ctranslate2", "int8", "auto", False, "cpu", False),
        ("ctranslate2", "float32", "auto", True, "cpu", False),
        ("ctranslate2", "float32", True, True, "cpu", True),
        ("ctranslate2", "int8", False, True, "cpu", False),
        ("ctranslate2", "int8", "auto", True, "cuda:1", False),
        ("torch", "float32", "auto", True, "cpu", False),
        ("ctranslate2", "float32", True, False, "cpu", None),
        ("torch", "float32", True, True, "cpu", None),
    ],
)
@pytest.mark.parametrize("scheduler", [None, "tcp://nowhere:1"])
def test_shortlist_is_in_key_and_must_exist(
    tiny_model: Path,
    half: Path,
    case: tuple[str, str, bool | str, bool, str, bool | None],
    scheduler: str | None,
) -> None:
    engine, compute_type, shortlist, has_list, device, used = case
    options = DecodingOptions.model_validate({"compute_type": compute_type, "shortlist": shortlist})
    away = scheduler if device == "cpu" else "tcp://nowhere:1"  # here may be no GPU
    resources = Resources(devices=[device], scheduler=away)
    with pytest.raises(InputError, match="Set shortlist to auto") if used is None else nullcontext():
        choice = choose_engine(engine, half if has_list else tiny_model, options, {}, resources)
        assert choice.options.shortlist is used
        assert choice.parameters().get("shortlist", False) is used
        assert choice.description().get("shortlist", False) is used
