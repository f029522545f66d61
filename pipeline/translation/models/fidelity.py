"""Whether a converted model says what the original says: converters pass over what they do not know.

CTranslate2's converters read those options of a model that they know and leave the rest. A model with another
number of heads in its decoder, or with scaled heads, would be converted without a word into one that
translates worse. So some tokens are scored by both.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paraforge.base.errors import InputError

logger = logging.getLogger(__name__)

# Mean difference of a token's log-probability that rounding explains, by the type of the weights.
TOLERANCE = {"float32": 0.02, "float16": 0.5, "bfloat16": 0.5}
_TOKENS = 6


@dataclass(frozen=True)
class Reference:
    """What the original gives.

    source: tokens that the converted model is to read.
    target: tokens of a translation, end-of-sentence left out.
    log_probabilities: of each of them and of end-of-sentence.
    tolerance: mean difference that is no difference.
    """

    source: list[str]
    target: list[str]
    log_probabilities: list[float]
    tolerance: float


def some_tokens(tokens: Sequence[str]) -> list[int]:
    """Numbers of a few ordinary tokens from all over a vocabulary, always the same ones."""
    ordinary = [
        number
        for number, token in enumerate(tokens)
        if not (token.startswith("<") and token.endswith(">")) and not token.startswith((">>", "__"))
    ]
    step = max(1, len(ordinary) // _TOKENS)
    return ordinary[step // 2 :: step][:_TOKENS]


@contextmanager
def comparing(path: Path) -> Iterator[None]:
    """Go on with a warning where a comparison cannot be made: that alone is no fault of a model.

    path: the original, for the warning.

    Raises InputError: the comparison was made, and says that the model is another one.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        logger.warning("%s could not be compared with what became of it: %s", path, reason)


def check_fidelity(folder: Path, reference: Reference, path: Path) -> None:
    """Compare a converted model with what the original gives.

    folder: CTranslate2 directory. path: the original, for the error.

    Raises InputError: they differ by more than rounding.
    """
    import ctranslate2

    translator = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32", intra_threads=1)
    (found,) = translator.score_batch([reference.source], [reference.target])
    pairs = list(zip(found.log_probs, reference.log_probabilities, strict=True))
    # Whatever is hopeless to both is no difference: -60 and -65 are the same.
    difference = sum(abs(max(one, -60.0) - max(other, -60.0)) for one, other in pairs) / len(pairs)
    if not difference <= reference.tolerance:
        raise InputError(
            f"converted, it gives other probabilities than it did (by {difference:.2f} a token): "
            "it has parts that CTranslate2's converter passes over",
            path,
            remedy="Only plain transformers can be imported.",
        )
