"""Options, flags and fingerprints of translations."""

from __future__ import annotations

import math

import pytest

from paraforge.translation.decoding.translator import DecodingOptions, fingerprint_of, make_hypothesis


def test_flags_of_a_hypothesis_that_ended() -> None:
    hypothesis = make_hypothesis("a dog", -0.5, ["▁a", "▁dog"], ended=True)
    assert hypothesis.tokens == 3  # end-of-sentence counts
    assert (hypothesis.output_truncated, hypothesis.runaway, hypothesis.non_finite) == (False, False, False)
    assert not hypothesis.empty


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
    with pytest.raises(ValueError, match=next(iter(wrong))):
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
