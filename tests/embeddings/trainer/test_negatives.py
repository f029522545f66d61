"""The choice of negatives against exhaustive search."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.embeddings.trainer import negatives
from paraforge.embeddings.trainer.negatives import (
    STRIP,
    ForbiddenCandidates,
    Precision,
    _search_directly,
    choose_negatives,
)
from tests.embeddings.trainer import oracle


def _embeddings(pairs: int, dimension: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2 * pairs, dimension, dtype=torch.float64, generator=generator)


@example(pairs=1, two_sided=True, seed=0)  # which has none
@given(pairs=st.integers(2, 40), two_sided=st.booleans(), seed=st.integers(0, 10_000))
def test_max_negative_is_most_similar_other_sentence(pairs: int, two_sided: bool, seed: int) -> None:
    embeddings = _embeddings(pairs, 8, seed)
    chosen = choose_negatives(embeddings, pairs, two_sided=two_sided)
    assert chosen.tolist() == oracle.max_negatives(embeddings, pairs, two_sided)


@given(pairs=st.integers(3, 30), kinds=st.integers(3, 20), seed=st.integers(0, 10_000))
def test_identical_texts_are_not_candidates(pairs: int, kinds: int, seed: int) -> None:
    texts = np.random.default_rng(seed).integers(kinds, size=2 * pairs)
    forbidden = ForbiddenCandidates(pairs, texts)
    embeddings = _embeddings(pairs, 6, seed)
    expected = oracle.max_negatives(embeddings, pairs, True, texts.tolist())
    assert choose_negatives(embeddings, pairs, forbidden=forbidden).tolist() == expected


def test_bfloat16_search_is_nearly_maximal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are rounded to bfloat16, and another order of sums may break ties differently."""
    pairs = 3 * STRIP
    embeddings = _embeddings(pairs, 16, 1).float()
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    best = choose_negatives(embeddings, pairs, precision="float32")
    chosen = []
    for has_bfloat16 in (True, False):
        monkeypatch.setattr(negatives, "cpu_has_bfloat16", lambda has=has_bfloat16: has)
        chosen.append(choose_negatives(embeddings, pairs, precision="bfloat16"))
        lost = (unit * unit[best]).sum(1) - (unit * unit[chosen[-1]]).sum(1)
        assert -1e-6 <= lost.min() <= lost.max() < 0.01 and lost.mean() < 0.001
    assert float((chosen[0] == chosen[1]).double().mean()) > 0.99


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("dimension", [0, 1])
def test_integer_search_finds_highest_cosine(kind: torch.dtype, dimension: int) -> None:
    cosines = torch.rand(40, 40, generator=torch.Generator().manual_seed(1)).to(kind) * 2 - 1
    cosines[:20, :20] = -cosines[:20, :20].abs()
    for row, lowest in ((0, -torch.inf), (1, -0.0), (2, 0.0)):
        cosines[row] = cosines[:, row] = lowest
    cosines[3:, 1] = -torch.inf
    for part in (cosines, cosines[:20, :20], cosines[20:, 20:], cosines[:1, :1]):
        assert torch.equal(negatives._highest(part, dimension), part.amax(dimension))


def test_mega_batch_of_equal_texts_has_no_candidates() -> None:
    forbidden = ForbiddenCandidates(1000, np.zeros(2000, dtype=np.int64))
    assert (forbidden.random_candidates(np.random.default_rng(1)) == -1).all()


@pytest.mark.parametrize("pairs", [2, STRIP // 2, STRIP // 2 + 1, 3 * STRIP - 7])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_negative_search_blocks_and_threads_change_nothing(pairs: int, precision: Precision) -> None:
    embeddings = _embeddings(pairs, 16, pairs).float()
    alone = choose_negatives(embeddings, pairs, precision=precision)
    with ThreadPoolExecutor(3, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        shared = choose_negatives(embeddings, pairs, precision=precision, pool=pool)
    assert torch.equal(alone, shared)
    anchors = torch.arange(2 * pairs)
    assert not (alone == anchors).any()
    assert not (alone == (anchors + pairs) % (2 * pairs)).any()


@pytest.mark.parametrize("pairs", [1, 2, STRIP // 2, 3 * STRIP - 7])
def test_direct_gpu_search_gives_same_negatives(pairs: int) -> None:
    texts = (
        np.random.default_rng(pairs).integers(pairs, size=2 * pairs) if pairs > 2 else np.arange(2 * pairs)
    )
    forbidden = ForbiddenCandidates(pairs, texts)
    unit = torch.nn.functional.normalize(_embeddings(pairs, 16, pairs), dim=1)
    expected = choose_negatives(unit, pairs, forbidden=forbidden)
    assert torch.equal(_search_directly(unit, 2 * pairs, forbidden), expected)


def test_mix_takes_max_in_half_of_cases() -> None:
    pairs = 6
    embeddings = _embeddings(pairs, 4, 5)
    best = choose_negatives(embeddings, pairs)
    rounds = 400
    counts = np.zeros((2 * pairs, 2 * pairs))
    generator = np.random.default_rng(1)
    for _ in range(rounds):
        chosen = choose_negatives(embeddings, pairs, strategy="mix", generator=generator)
        counts[np.arange(2 * pairs), chosen.numpy()] += 1
    candidates = 2 * pairs - 2
    for anchor in range(2 * pairs):
        partner = (anchor + pairs) % (2 * pairs)
        assert counts[anchor, anchor] == counts[anchor, partner] == 0
        for candidate in range(2 * pairs):
            if candidate in (anchor, partner):
                continue
            expected = 0.5 / candidates + (0.5 if candidate == int(best[anchor]) else 0)
            deviation = (expected * (1 - expected) / rounds) ** 0.5
            assert abs(counts[anchor, candidate] / rounds - expected) < 5 * deviation


@given(pairs=st.integers(2, 12), kinds=st.integers(4, 12), seed=st.integers(0, 1000))
def test_random_negatives_are_allowed_candidates(pairs: int, kinds: int, seed: int) -> None:
    texts = np.random.default_rng(seed).integers(kinds, size=2 * pairs)
    forbidden = ForbiddenCandidates(pairs, texts)
    for anchor, candidate in enumerate(forbidden.random_candidates(np.random.default_rng(seed))):
        partner = (anchor + pairs) % (2 * pairs)
        allowed = [
            k
            for k in range(2 * pairs)
            if texts[k] not in (texts[anchor], texts[partner])
            and texts[(k + pairs) % (2 * pairs)] != texts[anchor]
        ]
        assert candidate in allowed if allowed else candidate == -1
