"""A tiny translation model: SentencePiece, fairseq transformer, CTranslate2."""

import argparse
import contextlib
import io
import random
from pathlib import Path

WORDS = {
    "pes": "dog", "kočka": "cat", "dům": "house", "strom": "tree", "běží": "runs", "spí": "sleeps",
    "velký": "big", "malý": "small", "starý": "old", "vidí": "sees", "a": "and", "voda": "water",
}  # fmt: skip


def bitext(pairs: int, seed: int = 1, longest: int = 7) -> list[tuple[str, str]]:
    """Sentences of random words and their translations, word by word in reverse order."""
    dice = random.Random(seed)
    found = []
    for _ in range(pairs):
        words = [dice.choice(sorted(WORDS)) for _ in range(dice.randint(1, longest))]
        found.append((" ".join(words), " ".join(WORDS[word] for word in reversed(words))))
    return found


def write_tiny_fairseq(folder: Path, updates: int = 120) -> Path:
    """Train a tiny transformer for a second or two and write checkpoint, dictionaries and SentencePiece."""
    from paraforge.translation.models.fairseq_compat import import_fairseq

    import_fairseq()
    import sentencepiece
    import torch
    from fairseq.data import Dictionary, data_utils
    from fairseq.models import build_model
    from fairseq.tasks.translation import TranslationTask

    folder.mkdir(parents=True, exist_ok=True)
    pairs = bitext(400)
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(side for pair in pairs for side in pair) + "\n", encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(folder / "sentencepiece"), vocab_size=60, hard_vocab_limit=False,
        character_coverage=1.0, minloglevel=2,
    )  # fmt: skip
    corpus.unlink()
    (folder / "sentencepiece.vocab").unlink()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    dictionary = Dictionary()
    for number in range(3, processor.get_piece_size()):  # after <unk>, <s> and </s>
        dictionary.add_symbol(processor.id_to_piece(number))
    for language in ("cs", "en"):
        dictionary.save(str(folder / f"dict.{language}.txt"))

    arguments = argparse.Namespace(
        arch="transformer_iwslt_de_en", _name="transformer_iwslt_de_en", task="translation", data=str(folder),
        source_lang="cs", target_lang="en", left_pad_source=True, left_pad_target=False,
        encoder_layers=1, decoder_layers=2, encoder_embed_dim=32, decoder_embed_dim=32,
        encoder_ffn_embed_dim=64, decoder_ffn_embed_dim=64,
        encoder_attention_heads=2, decoder_attention_heads=2,
        share_all_embeddings=True, dropout=0.0, max_source_positions=64, max_target_positions=64,
    )  # fmt: skip
    torch.manual_seed(1)
    task = TranslationTask(arguments, dictionary, dictionary)
    with contextlib.redirect_stdout(io.StringIO()):
        model = build_model(arguments, task)
    optimizer = torch.optim.Adam(model.parameters(), 0.005)

    def batch(sides: list[str], *, left_pad: bool, shifted: bool = False) -> torch.Tensor:
        rows = [
            torch.tensor([*map(dictionary.index, processor.encode(side, out_type=str)), dictionary.eos()])
            for side in sides
        ]
        return data_utils.collate_tokens(
            rows, dictionary.pad(), dictionary.eos(), left_pad, move_eos_to_beginning=shifted
        )

    model.train()
    for update in range(updates):
        chosen = random.Random(update).sample(pairs, 64)
        source = batch([pair[0] for pair in chosen], left_pad=True)
        lengths = source.ne(dictionary.pad()).sum(1)
        target = batch([pair[1] for pair in chosen], left_pad=False)
        previous = batch([pair[1] for pair in chosen], left_pad=False, shifted=True)
        logits, _ = model(source, lengths, previous)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=dictionary.pad()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save_checkpoint(folder / "checkpoint.pt", arguments, model.state_dict())
    return folder


def save_checkpoint(path: Path, arguments: argparse.Namespace, weights: dict[str, object]) -> None:
    """Write weights as fairseq lays them out."""
    import torch

    history = [
        {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {"best": None}, "num_updates": 1}
    ]
    extra = {"epoch": 1, "train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}
    state = {"args": arguments, "cfg": None, "model": weights, "extra_state": extra}
    torch.save({**state, "optimizer_history": history}, path)


def write_model(folder: Path, output: Path) -> Path:
    """Import what :func:`write_tiny_fairseq` wrote."""
    from paraforge.translation.models.importing import import_model

    import_model(folder, output, source_language="cs", target_language="en")
    return output
