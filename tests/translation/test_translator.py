"""Options, flags and fingerprints of translations."""

from __future__ import annotations

import math

import pytest

from pipeline.translation.translator import DecodingOptions, fingerprint_of, is_runaway, make_hypothesis


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        pytest.param([], False, id="nothing"),
        pytest.param(["a"], False, id="one token"),
        pytest.param(["a"] * 8, True, id="one token to the end"),
        pytest.param(["the", "dog"] * 8, True, id="a block of two"),
        pytest.param(["x", "y", *["a", "b", "c"] * 6], True, id="it began well"),
        pytest.param(list("abcdefgh"), False, id="all different"),
        pytest.param([*["a"] * 15, "b"], False, id="the repetition ends"),
        pytest.param(list("abcdefghi") * 8, False, id="a block of nine is not a stutter"),
    ],
)
def test_a_runaway_repeats_a_short_block_to_its_end(tokens: list[str], expected: bool) -> None:
    assert is_runaway(tokens) is expected


def test_flags_of_a_hypothesis_that_ended() -> None:
    hypothesis = make_hypothesis("a dog", -0.5, ["▁a", "▁dog"], ended=True)
    assert hypothesis.tokens == 3  # end-of-sentence counts
    assert (hypothesis.output_truncated, hypothesis.runaway, hypothesis.non_finite) == (False, False, False)
    assert not hypothesis.empty


def test_repetition_is_a_runaway_only_at_the_cap() -> None:
    tokens = ["▁ha"] * 12
    assert not make_hypothesis("ha " * 12, -0.1, tokens, ended=True).runaway
    at_cap = make_hypothesis("ha " * 12, -0.1, tokens, ended=False)
    assert at_cap.runaway
    assert at_cap.output_truncated
    assert at_cap.tokens == 12


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_marked(score: float) -> None:
    hypothesis = make_hypothesis("a", score, ["▁a"], ended=True)
    assert hypothesis.non_finite
    assert math.isnan(hypothesis.score)


def test_a_hypothesis_of_spaces_is_empty() -> None:
    assert make_hypothesis(" ", -1.0, ["▁"], ended=True).empty


@pytest.mark.parametrize(
    "wrong",
    [{"nbest": 13}, {"nbest": 0}, {"beam": 0}, {"maximum_source_tokens": 1}, {"maximum_target_tokens": 1}],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"nbest|maximum"):
        DecodingOptions(**wrong)


def test_every_option_is_in_the_fingerprint() -> None:
    changed = [
        DecodingOptions(),
        DecodingOptions(beam=5),
        DecodingOptions(nbest=2),
        DecodingOptions(length_penalty=0.6),
        DecodingOptions(maximum_source_tokens=512),
        DecodingOptions(maximum_target_tokens=512),
        DecodingOptions(compute_type="int8"),
    ]
    fingerprints = [fingerprint_of("ctranslate2", "weights", options) for options in changed]
    fingerprints += [
        fingerprint_of("fairseq", "weights", DecodingOptions()),
        fingerprint_of("ctranslate2", "other weights", DecodingOptions()),
    ]
    assert len(set(fingerprints)) == len(fingerprints)
