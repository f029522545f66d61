"""Speed and memory of training decoders on the novels of PARAFORGE_DATA, by encoder and decoder.

python -m benchmarks.unrolling --only bow-gru --updates 100

What they are worth is in experiments/tables/unrolling.yaml.
"""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append
from experiments.pairs import data_directory
from paraforge.embeddings.trainer.parameters import VocabularyParameters
from paraforge.embeddings.unrolling.network import SentencePredictor
from paraforge.embeddings.unrolling.objective import decoder_trainer
from paraforge.embeddings.unrolling.parameters import DecodersParameters
from paraforge.embeddings.unrolling.sentences import SentenceFile, read_sentences
from paraforge.embeddings.unrolling.triples import build_triple_store

COMBINATIONS = ("bow-gru", "gru-gru", "bow-bow", "gru-bow")
MAXIMUM_LENGTH = 30


def main(
    only: Annotated[list[str] | None, typer.Option(help="combinations; all by default")] = None,
    updates: Annotated[int, typer.Option(help="of each model")] = 100,
    batch_size: Annotated[int, typer.Option(help="triples of an update")] = 64,
    words: Annotated[int, typer.Option(help="vocabulary")] = 10_000,
    dimension: int = 300,
    precision: str = "bfloat16",
    sampled_words: Annotated[
        int | None, typer.Option(help="of a sampled softmax; none: the exact one")
    ] = None,
    threads: int = 1,
    device: str = "cpu",
) -> None:
    """Sentences a second of each combination."""
    print(hardware())
    limits = VocabularyParameters(minimum_count=1, maximum_size=words)
    with tempfile.TemporaryDirectory() as temporary:
        sentences = read_sentences([SentenceFile(data_directory() / "books" / "sentences.tsv.gz")])
        store = build_triple_store(Path(temporary), sentences, limits, MAXIMUM_LENGTH)
        for combination in only or COMBINATIONS:
            encoder, decoder = combination.split("-")
            parameters = DecodersParameters.model_validate(
                {
                    "network": {
                        "encoder": encoder,
                        "decoder": decoder,
                        "word_dimension": dimension,
                        "state_dimension": dimension,
                    },
                    "vocabulary": limits.model_dump(),
                    "maximum_length": MAXIMUM_LENGTH,
                    "training": {
                        "updates": updates,
                        "batch_size": batch_size,
                        "precision": precision,
                        "sampled_words": sampled_words,
                    },
                }
            )
            network = SentencePredictor(parameters.network, len(store.vocabulary), parameters.training.seed)
            trainer = decoder_trainer(
                network, store, parameters.training, threads=threads, device=device, description=combination
            )
            trainer.run()
            append(
                "unrolling_speed",
                combination if sampled_words is None else f"{combination}, {sampled_words:,} sampled words",
                {
                    "sentences_per_second": trainer.rate,
                    "loss": trainer.record.history[-1]["loss"],
                    "peak_mib": peak_memory(),
                },
                updates=trainer.record.updates,
                batch=batch_size,
                vocabulary=words,
                dimension=dimension,
                precision=precision,
                sampled_words=sampled_words,
                threads=threads,
                device=device,
            )


if __name__ == "__main__":
    typer.run(main)
