"""Models of the Hugging Face Hub: only the files that are needed, of one revision, by its commit."""

from __future__ import annotations

import re
from pathlib import Path

from paraforge.base.errors import InputError, first_line, require

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SMALL = (
    ".json", ".spm", ".model", ".txt", ".yml", ".yaml", ".bpe", ".vocab", ".spm32k", "bpecodes", "vmap.txt",
)  # fmt: skip


def is_hub_name(text: str) -> bool:
    """Whether a text may name a model of the hub: ORGANISATION/NAME, perhaps with @REVISION."""
    return _NAME.fullmatch(text.partition("@")[0]) is not None


def download(text: str) -> tuple[Path, str]:
    """Bring a model of the hub into the user's Hugging Face cache.

    Neither Python code nor, where there are safetensors, pickled weights are downloaded.

    text: ORGANISATION/NAME, or ORGANISATION/NAME@REVISION with a branch, tag or commit.

    Returns the directory, and ORGANISATION/NAME@COMMIT.

    Raises:
        InputError: no such model or revision, no access to it, or the Hub cannot be reached.
        MissingPackageError: huggingface_hub is not installed.
    """
    hub = require("huggingface_hub", "hub")
    errors = require("huggingface_hub.errors", "hub")
    name, _, revision = text.partition("@")
    try:
        api = hub.HfApi()
        found = api.model_info(name, revision=revision or None)
        files = wanted([file.rfilename for file in found.siblings or []])
        paths = [api.hf_hub_download(name, file, revision=found.sha) for file in files]
    except errors.GatedRepoError as error:
        raise InputError(
            f"the hub shows {name} only to those whom its owners let in",
            remedy="Ask for access on its page, and run 'hf auth login'.",
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(f"the hub's {name} has no revision {revision!r}") from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(
            f"{name} is neither a path here nor a model of the hub",
            remedy="Check the name; for a private model run 'hf auth login'.",
        ) from error
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise InputError(f"the Hub does not give {name}: {first_line(error)}") from error
    except Exception as error:
        # The library has changed what it speaks HTTP with, and lets that one's errors through.
        if not type(error).__module__.startswith(("httpx", "httpcore", "requests", "urllib3")):
            raise
        raise InputError(
            f"cannot reach the Hub for {name}: {first_line(error)}",
            remedy="Give the path of a directory, or set HF_ENDPOINT to a mirror.",
        ) from error
    if not paths:
        raise InputError(f"the hub's {name} has no files of a translation model")
    return Path(paths[0]).parent, f"{name}@{found.sha}"


def wanted(names: list[str]) -> list[str]:
    """Of a repository's files those that an import may need: no code, and one form of the weights."""
    top = [name for name in names if "/" not in name]
    weights = [name for name in top if name.endswith((".safetensors", ".npz", ".pt"))]
    if not any(name.endswith(".safetensors") for name in weights):
        weights += [name for name in top if re.fullmatch(r"pytorch_model(-\d+-of-\d+)?\.bin", name)]
    weights += [name for name in top if name == "model.bin"]  # CTranslate2
    return sorted({*weights, *(name for name in top if name.endswith(_SMALL))})
