"""Subwords of every kind, and language tokens."""

from pathlib import Path
from typing import Literal

import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.units import load_processor
from paraforge.translation.models.sentencepiece import (
    check_pieces,
    pieces_of,
    read_dictionary,
    train_vocabulary,
    write_dictionary,
)
from paraforge.translation.models.subwords import (
    copy_subwords,
    find_subwords,
    known_pieces,
    language_token,
    language_tokens,
    open_subwords,
)
from paraforge.translation.training.binarization import encode_sentences
from tests.translation.models.tiny import bitext


def test_subword_files_are_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no SentencePiece model next to the weights"):
        find_subwords(tmp_path)
    (tmp_path / "target.spm").touch()
    with pytest.raises(InputError, match="no SentencePiece model next to the weights"):
        find_subwords(tmp_path)
    (tmp_path / "tokenizer.json").touch()
    assert find_subwords(tmp_path) == (tmp_path / "tokenizer.json", tmp_path / "tokenizer.json")
    for language in ("de", "en"):
        (tmp_path / f"bpecodes.{language}").touch()
    assert find_subwords(tmp_path, ("de", "en")) == (tmp_path / "bpecodes.de", tmp_path / "bpecodes.en")
    (tmp_path / "sentencepiece.model").touch()
    assert find_subwords(tmp_path) == (tmp_path / "sentencepiece.model", tmp_path / "target.spm")


@pytest.mark.parametrize(
    "codes", ["#version: 0.2\nD o\nDo g</w>\ns l\n", "D o 9\nDo g</w> 7\ns l 1\n"], ids=["", "fastBPE"]
)
def test_bpe_after_moses(codes: str, tmp_path: Path) -> None:
    pytest.importorskip("subword_nmt")
    (tmp_path / "source.bpe").write_text(codes, encoding="utf-8")
    (tmp_path / "out").mkdir()
    bpe = open_subwords(copy_subwords(tmp_path / "source.bpe", tmp_path / "out", "source"), "en")
    sentence = "Dog, sleep & don't!"
    (tokens,) = bpe.encode([sentence], out_type=str)
    assert tokens[:6] == ["Dog", ",", "sl@@", "e@@", "e@@", "p"]
    assert "&@@" in tokens  # escaped as Moses does: &amp; and &apos;
    assert bpe.decode(tokens) == sentence
    check_pieces(bpe, ["Dog", "sl@@", "s@@", "l@@"], tmp_path)


def test_moses_follows_the_language(tmp_path: Path) -> None:
    pytest.importorskip("subword_nmt")
    (tmp_path / "codes.bpe").write_text("#version: 0.2\nD o\n", encoding="utf-8")
    texts = [
        open_subwords(tmp_path / "codes.bpe", code).decode(["l&apos;", "a", "&apos;s"])
        for code in ("en", "fr")
    ]
    assert texts == ["l' a's", "l'a 's"]
    with pytest.raises(InputError, match="no such file of BPE codes"):
        open_subwords(tmp_path / "missing.bpe", "en")


def test_tokenizer_json(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(special_tokens=["<unk>", "</s>"], show_progress=False)
    made.train_from_iterator(["pes spí velký dům"] * 4, trainer)
    made.enable_truncation(2)  # a model's own limits are the pipeline's to keep, and to report
    made.save(str(tmp_path / "tokenizer.json"))
    subwords = open_subwords(tmp_path / "tokenizer.json", "cs")
    (tokens,) = subwords.encode(["pes velký dům"], out_type=str)
    assert tokens == ["▁pes", "▁velký", "▁dům"]
    assert subwords.decode([*tokens, "unheard-of"]) == "pes velký dům"
    pieces = ["▁pes", "▁", "<unk>", "unheard-of"]
    assert [*map(known_pieces(subwords), pieces)] == [True, False, False, False]
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"not a tokenizer\.json, or damaged"):
        open_subwords(tmp_path / "tokenizer.json", "cs")


NLLB = ["ces_Latn", "eng_Latn", "zho_Hans", "zho_Hant", "lvs_Latn", "pes", "en_route", "▁eng_Latn"]


@pytest.mark.parametrize(
    ("language", "vocabulary", "token"),
    [
        ("cs", ["__cs__", "__en__"], "__cs__"),
        ("cs", NLLB, "ces_Latn"),
        ("ces", NLLB, "ces_Latn"),
        ("lv", NLLB, "lvs_Latn"),
        ("zho_Hant", NLLB, "zho_Hant"),
        ("en", ["cs_CZ", "en_XX"], "en_XX"),
        ("de", [">>deu<<", ">>eng<<"], ">>deu<<"),
        ("de", ["<2de>"], "<2de>"),
        ("fa", ["▁pes", "pes"], None),
        ("pes", ["▁pes", "pes"], None),
        ("en", [], None),
    ],
)
def test_language_token_of_vocabulary(language: str, vocabulary: list[str], token: str | None) -> None:
    assert language_token(language, vocabulary) == token


def test_ambiguous_language_token_needs_choice() -> None:
    assert language_tokens(NLLB) == ["ces_Latn", "eng_Latn", "lvs_Latn", "zho_Hans", "zho_Hant"]
    with pytest.raises(InputError, match="zho_Hans, zho_Hant"):
        language_token("zh", NLLB)


SENTENCES = [side for pair in bitext(300) for side in pair]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocabulary") / "source.spm"
    train_vocabulary(SENTENCES, path, size=70)
    return path


def test_known_pieces_of_sentencepiece(model: Path) -> None:
    processor = load_processor(model)
    word = next(piece for number in range(1, 70) if len(piece := processor.id_to_piece(number)) > 2)
    pieces = [word, "▁", "<unk>", "unheard-of"]
    assert [*map(known_pieces(processor), pieces)] == [True, False, False, False]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_pieces_spell_sentences(tmp_path: Path, kind: Literal["unigram", "bpe"]) -> None:
    train_vocabulary(SENTENCES, tmp_path / "m.spm", size=48, kind=kind)
    processor = load_processor(tmp_path / "m.spm")
    assert processor.get_piece_size() == 48
    assert processor.decode(processor.encode(SENTENCES, out_type=str)) == SENTENCES
    assert pieces_of(processor)[0] == "<unk>"


def test_byte_fallback_and_oversized_vocabulary(tmp_path: Path) -> None:
    for size, fallback in ((330, True), (5000, False)):
        train_vocabulary(SENTENCES, tmp_path / "m.spm", size=size, byte_fallback=fallback)
        processor = load_processor(tmp_path / "m.spm")
        assert processor.get_piece_size() < 500
        assert (processor.decode(processor.encode("pes 🐕")) == "pes 🐕") is fallback


def test_vocabulary_bytes_depend_only_on_sentences(tmp_path: Path, model: Path) -> None:
    train_vocabulary(iter(SENTENCES), tmp_path / "again.spm", size=70)
    assert (tmp_path / "again.spm").read_bytes() == model.read_bytes()


@pytest.mark.parametrize(
    ("sentences", "size", "message"),
    [([], 70, "no sentences"), (SENTENCES, 5, r"no vocabulary of 5 pieces .* 600 sentences")],
)
def test_untrainable_vocabularies(tmp_path: Path, sentences: list[str], size: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        train_vocabulary(sentences, tmp_path / "m.spm", size=size)
    assert not list(tmp_path.iterdir())


def test_ids_match_fairseq_dictionary(tmp_path: Path, model: Path) -> None:
    from paraforge.translation.models.fairseq_compat import import_fairseq

    import_fairseq()
    from fairseq.data import Dictionary

    processor = load_processor(model)
    types = write_dictionary(processor, tmp_path / "dict.cs.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.cs.txt"))
    assert len(dictionary) == types
    assert types % 8 == 0
    sentences = [*SENTENCES, "žluťoučký kůň", "", "pes pes"]
    expected = [
        dictionary.encode_line(" ".join(pieces), add_if_not_exist=False, append_eos=True).tolist()
        for pieces in processor.encode(sentences, out_type=str)
    ]
    assert encode_sentences(processor, sentences).to_pylist() == expected
    words, pieces = read_dictionary(tmp_path / "dict.cs.txt"), pieces_of(processor)[1:]
    assert words[: len(pieces)] == pieces
    assert all(word.startswith("madeupword") for word in words[len(pieces) :])


def test_piece_named_like_fairseq_symbol_is_refused(tmp_path: Path) -> None:
    train_vocabulary(SENTENCES, tmp_path / "m.spm", size=48, symbols=["<pad>", "<new>"])
    processor = load_processor(tmp_path / "m.spm")
    assert processor.get_piece_size() == 50
    with pytest.raises(InputError, match="pieces named <pad> clash"):
        write_dictionary(processor, tmp_path / "dict.cs.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty dictionary"),
        (b"a 1\nb\n", ":2: not a line of a fairseq dictionary"),
        (b"a 1\nb one\n", ":2: not a line"),
        (b"a 1\n\xff 1\n", ":2: not UTF-8"),
        (None, "no such dictionary"),
    ],
)
def test_bad_dictionaries(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "dict.cs.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_dictionary(tmp_path / "dict.cs.txt")
    (tmp_path / "dict.cs.txt").write_text("<special> 5 #fairseq:overwrite\na b 7\n", encoding="utf-8")
    assert read_dictionary(tmp_path / "dict.cs.txt") == ["<special>", "a b"]  # a mark is no part of a type


def test_mismatched_sentencepiece_model_is_refused(tmp_path: Path, model: Path) -> None:
    processor = load_processor(model)
    types = pieces_of(processor)[1:]
    check_pieces(processor, [*types, "madeupword0000"], model)
    check_pieces(processor, [*types, *(f"other{n}" for n in range(500))], model)  # one vocabulary for two
    check_pieces(processor, types[:30], model)  # a dictionary of the types that were seen
    foreign = [f"▁{word}" for word in ("úplně", "jiný", "slovník", "cizího", "modelu")] * 20
    with pytest.raises(InputError, match="is not of this vocabulary"):
        check_pieces(processor, [f"{word}{number}" for number, word in enumerate(foreign)], model)
