"""The stage decoders: ``models/decoders`` by training on running text, or nothing, for which torch is not
imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paraforge.base.devices import chosen_device
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.paths import expand
from paraforge.corpus.publication.held_out import HeldOut
from paraforge.embeddings.learning.runs import write_curve
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.unrolling.parameters import DecodersStageParameters
from paraforge.embeddings.unrolling.sentences import References, Remaining, RunningText, SentenceFile

if TYPE_CHECKING:
    from paraforge.embeddings.unrolling.train_decoders import DecodersReport


def build_decoders(
    parameters: DecodersStageParameters,
    ingested: Path,
    output: Path,
    resources: Resources,
    curve: Path,
    held_out: HeldOut | None = None,
) -> DecodersReport | None:
    """Make ``output`` (``models/decoders``) as the parameters say; the training curve goes to ``curve``.

    held_out: sentences that are left out; a document ends at each.

    Without text to train on, ``output`` is an empty directory, and the report None.

    Raises what `train_decoders` raises, and InputError where there is no source of a name.
    """
    text: list[RunningText] = [
        SentenceFile(Path(expand(file.path)), file.format, file.sentence_column, file.document_columns)
        for file in parameters.files
    ]
    if parameters.sources:
        text.append(References(ingested, tuple(parameters.sources)))
    if held_out:
        text = [Remaining(one, held_out) for one in text]
    report = None
    if text:
        from paraforge.embeddings.unrolling.train_decoders import train_decoders

        judges = TrainingData(development=parameters.development, test_sets=parameters.test_sets)
        device = chosen_device(resources.devices[0])
        report = train_decoders(parameters.model, text, output, resources, judges=judges, device=device)
    else:
        with replaced_directory(output):
            pass
    write_curve(curve, "update", "updates", report.history if report else ())
    return report
