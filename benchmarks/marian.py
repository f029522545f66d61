"""One of our models as a Marian model of Transformers, to measure its ``generate`` over the same weights."""

from pathlib import Path
from typing import Any

from paraforge.translation.models.model_file import ModelFile
from paraforge.translation.torch_search.weights import (
    TokenIds,
    check_architecture,
    layers_of,
    open_vocabulary,
)


def as_marian(folder: Path) -> tuple[Any, TokenIds]:
    """A ``MarianMTModel`` with the weights of a CTranslate2 directory.

    Transformers computes the positions of a Marian model anew whenever it loads one, in Marian's own layout,
    which silently spoils weights that were trained with another; so they are put in after the model is made.

    Args:
        folder: of a post-norm transformer with shared embeddings.

    Returns:
        The model and its vocabulary.
    """
    import torch
    import transformers

    file = ModelFile(folder)
    check_architecture(file)
    vocabulary = open_vocabulary(folder, file)
    types, width = file.shape("decoder/embeddings/weight")
    positions = file.shape("encoder/position_encodings/encodings")[0]
    heads = int(file.scalar("encoder/num_heads"))
    padding = vocabulary.banned[0]
    model = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=types,
            d_model=width,
            encoder_layers=layers_of(file, "encoder"),
            decoder_layers=layers_of(file, "decoder"),
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=file.shape("encoder/layer_0/ffn/linear_0/weight")[0],
            decoder_ffn_dim=file.shape("decoder/layer_0/ffn/linear_0/weight")[0],
            max_position_embeddings=positions,
            activation_function="relu",
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            pad_token_id=padding,
            eos_token_id=vocabulary.end,
            decoder_start_token_id=vocabulary.start,
            forced_eos_token_id=None,
        )
    )
    state = model.state_dict()

    def put(name: str, values: Any) -> None:
        state[name].copy_(torch.from_numpy(values.copy()))

    for tied in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        put(f"{tied}.weight", file.array("decoder/embeddings/weight"))
    put("model.encoder.embed_positions.weight", file.array("encoder/position_encodings/encodings"))
    put("model.decoder.embed_positions.weight", file.array("decoder/position_encodings/encodings"))
    for side in ("encoder", "decoder"):
        for number in range(layers_of(file, side)):
            ours, theirs = f"{side}/layer_{number}", f"model.{side}.layers.{number}"
            attentions = {"self_attention": "self_attn"}
            if side == "decoder":
                attentions["attention"] = "encoder_attn"
            for our_name, their_name in attentions.items():
                inputs = (0, 0, 0) if our_name == "self_attention" else (0, 1, 1)
                last = 1 if our_name == "self_attention" else 2
                for kind in ("weight", "bias"):
                    parts = {n: file.array(f"{ours}/{our_name}/linear_{n}/{kind}") for n in {0, 1, last}}
                    split = [parts[0][:width], *(parts[inputs[1]][-2 * width :].reshape(2, width, -1))]
                    for projection, values in zip("qkv", split, strict=True):
                        shape = state[f"{theirs}.{their_name}.{projection}_proj.{kind}"].shape
                        put(f"{theirs}.{their_name}.{projection}_proj.{kind}", values.reshape(shape))
                    put(f"{theirs}.{their_name}.out_proj.{kind}", parts[last])
                _norm(put, file, f"{ours}/{our_name}/layer_norm", f"{theirs}.{their_name}_layer_norm")
            for number_of, name in enumerate(("fc1", "fc2")):
                for kind in ("weight", "bias"):
                    put(f"{theirs}.{name}.{kind}", file.array(f"{ours}/ffn/linear_{number_of}/{kind}"))
            _norm(put, file, f"{ours}/ffn/layer_norm", f"{theirs}.final_layer_norm")
    model.generation_config.bad_words_ids = [[padding]]
    model.generation_config.forced_eos_token_id = None
    model.generation_config.min_new_tokens = 1
    model.generation_config.max_length = positions
    return model, vocabulary


def _norm(put: Any, file: ModelFile, ours: str, theirs: str) -> None:
    put(f"{theirs}.weight", file.array(f"{ours}/gamma"))
    put(f"{theirs}.bias", file.array(f"{ours}/beta"))
