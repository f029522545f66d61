"""Fits the weights of the column `contradiction` on freely licensed data with rule-made changes of meaning.

Good pairs are those of Bible versions, of Tatoeba's English sentences of one Czech sentence, and sentences of
Tatoeba and of novels with other wordings that are made here. Each of them with the change of a rule is a
contradiction, so that how many words a pair shares says nothing. The same data and seed give the same bytes
on one kind of machine.

python -m experiments.train_contradiction pipeline/corpus/scoring/meaning/weights.json
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from benchmarks.command_line import start
from benchmarks.hardware import data_directory
from experiments.pairs import paraphrases
from paraforge.base.files import write_json
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.scoring.alignment import directions_of
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.meaning.made_pairs import RULES
from paraforge.corpus.scoring.meaning.signs import NAMES, signs_of
from paraforge.corpus.scoring.meaning.words import WordBook
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.word_scorer import WordScorer
from scripts.derive_antonyms import synsets
from scripts.train_scorer import wordnet_pairs

TRAINED_ON: Final = [
    {"name": "Bible, seven English versions", "license": "public domain"},
    {"name": "Tatoeba, English sentences", "license": "CC BY 2.0 FR", "url": "https://tatoeba.org"},
    {"name": "Novels, sentences", "license": "public domain"},
    {
        "name": "WordNet 3.0, synonyms",
        "license": "WordNet 3.0 license",
        "url": "https://wordnet.princeton.edu",
    },
]
Pair = tuple[str, str]
Signs = npt.NDArray[np.float32]
_BIBLE: Final = 24_000
_SENTENCES: Final = 30_000
_DOUBLY: Final = 2_000
_WEIGHTS: Final = {"bible": 3.0, "tatoeba": 2.0, "sentences": 2.0, "novels": 2.0}
"""What the good pairs of an origin weigh, all together; doubly negated ones weigh 0.4."""
_OF_RULES: Final = {
    "negation": 1.3,
    "number": 0.5,
    "antonym": 1.2,
    "person": 0.6,
    "denial": 0.4,
    "other word": 0.3,
}
"""What the contradictions of a rule weigh, all together, of each origin."""
_UNITS: Final = 8
_EPOCHS: Final = 15
_CONTRACTIONS: Final = {
    "is not": "isn't", "are not": "aren't", "was not": "wasn't", "were not": "weren't", "do not": "don't",
    "does not": "doesn't", "did not": "didn't", "have not": "haven't", "has not": "hasn't",
    "had not": "hadn't", "would not": "wouldn't", "could not": "couldn't", "I am": "I'm", "it is": "it's",
    "It is": "It's", "will not": "won't", "cannot": "can't", "I have": "I've", "you are": "you're",
    "I will": "I'll", "all": "everything", "must": "have to", "but": "however", "big": "large",
    "begin": "start",
}  # fmt: skip
_DIGITS: Final = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
                  "nine": "9", "ten": "10", "eleven": "11", "twelve": "12"}  # fmt: skip
_DENIALS: Final = (
    (r"\b(will|would|should|must|may|might|shall) (?=[a-z])(?!not\b|never\b|be\b|have\b)",
     (r"\1 fail to ", r"\1 refuse to ", r"\1 avoid to ")),
    (r"\bcan (?=[a-z])(?!not\b|never\b)", ("is unable to ", "fails to ")),
    (r"\bcould (?=[a-z])(?!not\b|never\b)", ("was unable to ", "failed to ")),
    (r"\b(was|were) (?=[a-z]+e[dn]\b)", ("failed to be ", r"\1 prevented from being ", "stopped being ")),
    (r"\b(is|are) (?=[a-z]+e[dn]\b)", ("fails to be ", r"\1 prevented from being ", "refuses to be ")),
    (r"\bto (?=[a-z]+ (?:the|an?|his|him|her|their|them|my|me|your|our|us|it)\b)(?!the\b|all\b|an?\b)",
     ("to avoid to ", "to refuse to ", "to stop to ")),
    (r"\b(?:many|most|all)\b", ("few",)),
    (r"\b(?:much|everything)\b", ("little",)),
)  # fmt: skip
"""What is denied without a negation, and how."""
_COMMON: Final = 20
"""How often a word that takes another's place is in the texts, at least."""
_WORD: Final = re.compile(r"\b[a-z]{3,}\b")
_IDLE: Final = {"the", "very", "that", "so", "just", "really", "also", "then", "now", "a"}
_NEGATED: Final = re.compile(r"\b(is|are|was|were|be) (not )?(?=[a-z]+\b)")


def reworded(text: str, rng: random.Random, synonyms: Mapping[str, Sequence[str]]) -> str:
    """Reword a sentence: synonyms, contractions, digits, another order of clauses, or an unimportant word
    left out."""
    for _ in range(rng.randint(1, 3)):
        chance = rng.random()
        words = text.split()
        if chance < 0.45:
            places = [place for place, word in enumerate(words) if synonyms.get(word)]
            if places:
                place = rng.choice(places)
                words[place] = rng.choice(synonyms[words[place]])
            text = " ".join(words)
        elif chance < 0.65:
            both = [pair for long, short in _CONTRACTIONS.items() for pair in ((long, short), (short, long))]
            fitting = [(long, short) for long, short in both if re.search(rf"\b{re.escape(long)}\b", text)]
            if fitting:
                long, short = rng.choice(fitting)
                text = re.sub(rf"\b{re.escape(long)}\b", short, text, count=1)
        elif chance < 0.75:
            text = re.sub(r"[a-z]+", lambda found: _DIGITS.get(found[0], found[0]), text)
        elif chance < 0.85:
            if text.count(", ") == 1 and text[-1] in ".!?":
                first, second = text[:-1].split(", ")
                text = f"{second[0].upper()}{second[1:]}, {first[0].lower()}{first[1:]}{text[-1]}"
        elif len(words) > 5:
            places = [place for place, word in enumerate(words) if word in _IDLE]
            if places:
                del words[rng.choice(places)]
            text = " ".join(words)
    return text


def doubly_negated(text: str, rng: random.Random) -> str | None:
    """Add an antonym and a negation, which keep the meaning: `is not unhappy`; None if that is impossible."""
    match = _NEGATED.search(text)
    if match is None:
        return None
    word, *after = text[match.end() :].split(" ")
    opposite = RULES["antonym"](word, rng)
    if not opposite:
        return None
    return " ".join([text[: match.start()] + match[1], *([] if match[2] else ["not"]), opposite, *after])


def denied(text: str, rng: random.Random) -> str | None:
    """Deny without a negation: `failed to be found`; None if nothing fits."""
    found = [(pattern, others) for pattern, others in _DENIALS if re.search(pattern, text)]
    if not found:
        return None
    pattern, others = rng.choice(found)
    return re.sub(pattern, rng.choice(others), text, count=1)


def sister_words(wordnet: Path, texts: Iterable[str]) -> dict[str, list[str]]:
    """Return for each common word others of its kind, such as `gold` and `silver`, by their first senses."""
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    found: dict[str, list[str]] = {}
    for part in ("noun", "verb"):
        sets = {synset.place: synset for synset in synsets(wordnet, part)}
        senses = {}
        for line in (wordnet / f"index.{part}").read_text(encoding="utf-8").split("\n"):
            word, *fields = line.split() or [""]
            if counts[word] >= _COMMON:
                senses[word] = [field for field in fields if field in sets]
        below: dict[str, list[str]] = {}
        above = {
            word: [kind for symbol, kind, _ in sets[places[0]].pointers if symbol == "@"]
            for word, places in senses.items()
        }
        for word, kinds in above.items():
            for kind in kinds:
                below.setdefault(kind, []).append(word)
        for word, kinds in above.items():
            others = [other for kind in kinds for other in below[kind]]
            found.setdefault(word, []).extend(
                other for other in others if not set(senses[other]) & set(senses[word])
            )
    return {word: others for word, others in found.items() if others}


def good_pairs(wordnet: Path) -> dict[str, list[Pair]]:
    """Return pairs with equal meanings, by origin."""
    rng = random.Random(1)
    synonyms: dict[str, list[str]] = {}
    for first, second in wordnet_pairs(wordnet)[0]:
        if first.isalpha() and second.isalpha():
            synonyms.setdefault(first, []).append(second)
            synonyms.setdefault(second, []).append(first)
    found = {
        name: [
            pair
            for block in paraphrases(name)
            for pair in zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
        ]
        for name in ("bible", "tatoeba")
    }
    rng.shuffle(found["bible"])
    found["bible"] = found["bible"][:_BIBLE]
    files = {"sentences": ("bitext/tatoeba.en-cs.tsv.gz", 1), "novels": ("books/sentences.tsv.gz", -1)}
    for name, (path, column) in files.items():
        lines = numbered_lines(data_directory() / path)
        texts = list(dict.fromkeys(line.split("\t")[column] for _, line in lines))[1:]
        rng.shuffle(texts)
        texts = [text for text in texts if 3 < len(text.split()) < 40][:_SENTENCES]
        found[name] = [(text, reworded(text, rng, synonyms)) for text in texts]
        doubled = ((text, doubly_negated(text, rng)) for text in texts)
        negated = [(text, second) for text, second in doubled if second]
        found[f"{name}, doubly negated"] = negated[:_DOUBLY]
    return found


def contradictions(pairs: Sequence[Pair], sisters: Mapping[str, Sequence[str]]) -> dict[str, list[Pair]]:
    """Return, by rule, good pairs with a changed second side: by the verdict's rules, a denial, or a word
    replaced by another of its kind."""

    def other_word(text: str, rng: random.Random) -> str | None:
        places = [found for found in _WORD.finditer(text) if found[0] in sisters]
        if not places:
            return None
        place = rng.choice(places)
        return f"{text[: place.start()]}{rng.choice(sisters[place[0]])}{text[place.end() :]}"

    rng = random.Random(2)
    return {
        rule: [(first, made) for first, second in pairs if (made := change(second, rng)) and made != second]
        for rule, change in {**RULES, "denial": denied, "other word": other_word}.items()
    }


def signs_of_pairs(pairs: Sequence[Pair]) -> Signs:
    """Return the signs of pairs of texts."""
    first, second = zip(*pairs, strict=True)
    found = Pairs.of(pa.array(first), pa.array(second))
    vocabulary = found.reference_tokens.vocabulary
    directions, _ = directions_of(WordScorer.open(DIRECTORY).vectors.of_words(vocabulary))
    tokens = (found.reference_tokens, found.translation_tokens)
    return signs_of(*tokens, *WordBook().numbered(vocabulary), directions)[0]


def all_signs(wordnet: Path) -> dict[tuple[str, str], Signs]:
    """Return the signs of each origin's good pairs, and of pairs changed by each rule."""
    found = {}
    good = good_pairs(wordnet)
    sisters = sister_words(wordnet, (other for pairs in good.values() for _, other in pairs))
    for origin, pairs in good.items():
        found[origin, "good"] = signs_of_pairs(pairs)
        if origin in _WEIGHTS:
            for rule, changed in contradictions(pairs, sisters).items():
                found[origin, rule] = signs_of_pairs(changed)
    return found


def fitted(signs: Mapping[tuple[str, str], Signs]) -> dict[str, Any]:
    """Fit the weights of `contradiction`, with four digits each."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    weights = [
        np.full(len(rows), _weight(origin, kind, len(rows)) / len(rows), np.float32)
        for (origin, kind), rows in signs.items()
    ]
    truth = np.concatenate([np.full(len(rows), kind != "good") for (_, kind), rows in signs.items()])
    weight = np.concatenate(weights)
    # Good pairs and contradictions weigh as much in all.
    for side in (truth, ~truth):
        weight[side] *= len(weight) / 2 / weight[side].sum()
    inputs, target, weight_of = (
        torch.from_numpy(values)
        for values in (np.concatenate(list(signs.values())), truth.astype(np.float32), weight)
    )
    hidden, output = torch.nn.Linear(len(NAMES), _UNITS), torch.nn.Linear(_UNITS, 1)
    parameters = [*hidden.parameters(), *output.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, _EPOCHS)
    for _ in range(_EPOCHS):
        for rows in torch.randperm(len(inputs)).split(4096):
            margin = output(torch.relu(hidden(inputs[rows])))[:, 0]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                margin, target[rows], weight=weight_of[rows]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    print(f"loss of the last batch: {loss.item():.4f}")
    return {
        "hidden": hidden.weight.detach().numpy().astype(float).T.round(4).tolist(),
        "hidden_bias": hidden.bias.detach().numpy().astype(float).round(4).tolist(),
        "output": output.weight.detach().numpy().astype(float)[0].round(4).tolist(),
        "bias": round(output.bias.item(), 4),
    }


def _weight(origin: str, kind: str, rows: int) -> float:
    if kind == "good":
        return _WEIGHTS.get(origin, 0.4)
    # A rule that hardly ever applies weighs less.
    return (0.1 if origin == "tatoeba" else 1.0) * _OF_RULES[kind] * min(1.0, rows / 500)


def main(
    output: Annotated[Path, typer.Argument(help="file of the weights; replaced")],
    wordnet: Annotated[Path, typer.Option(help="WordNet's data files")] = Path("/usr/share/wordnet"),
) -> None:
    """Make pairs, fit the weights, and write them."""
    signs = all_signs(wordnet)
    for (origin, kind), rows in signs.items():
        print(f"{origin}, {kind}: {len(rows):,} pairs")
    write_json(output, {"trained_on": TRAINED_ON, "signs": list(NAMES), **fitted(signs)})


if __name__ == "__main__":
    start(main)
