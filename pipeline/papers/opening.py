"""Open the models of published experiments by name, next to all that `paraforge evaluate` opens."""

from collections.abc import Sequence

from paraforge.base.devices import chosen_device
from paraforge.embeddings.evaluation.similarity.comparing import OpenedModel
from paraforge.papers.lexical import BASELINES, make_baseline
from paraforge.papers.unrolling.parameters import is_decoder_model
from paraforge.products import loading


def open_model(name: str, sentences: Sequence[str] = (), device: str = "cpu") -> OpenedModel:
    """Open a lexical baseline, trained decoders (`DIRECTORY@unrolled:2`), or what
    `paraforge.products.loading.open_model` opens, and raise as that does.

    sentences: those that TF-IDF is fitted on.
    """
    for baseline, kind in BASELINES.items():
        if name == baseline:
            return OpenedModel(name, kind, make_baseline(baseline, sentences))
    if is_decoder_model(name):
        from paraforge.papers.unrolling.model import DecoderModel

        model = DecoderModel.open(name, chosen_device(device))
        network = model.parameters.network
        kind = (
            f"trained decoders, {network.encoder}-{network.decoder}, read by {model.representation}, "
            f"{model.dimension} dimensions, {model.representation.similarity}"
        )
        return OpenedModel(name, kind, model)
    return loading.open_model(name, device=device)
