"""Verifies a published corpus and uploads it to the Hugging Face Hub."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, ParaforgeError, first_line, require
from paraforge.base.shards.store import INDEX_NAME
from paraforge.corpus.publication.card import CONFIGS_NAME, card_path
from paraforge.corpus.publication.manifest import MANIFEST_NAME, Manifest, read_manifest
from paraforge.corpus.publication.parameters import NOT_STATED
from paraforge.corpus.publication.verification import verify

_KIND: Any = "dataset"
_REMEDY = (
    "Use USER/NAME as the name. Log in with 'hf auth login', or set HF_TOKEN to a token with write access. "
    "After a lost connection, run the same command again; uploaded files are not sent twice."
)


def check_push(corpus: Path, repository: str) -> Manifest:
    """Verify a corpus before it is uploaded, and return its manifest.

    Raises InputError if the corpus is damaged, contains a symbolic link, or has a source without a stated
    license; or if the repository is not named USER/NAME, because the Hub would create it under another name.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise InputError("not the name of a repository", repository, remedy="Use USER/NAME.")
    outcome = verify(corpus)
    if outcome.problems or outcome.manifest is None:
        raise outcome.problems[0]
    if links := sorted(str(path.relative_to(corpus)) for path in corpus.rglob("*") if path.is_symlink()):
        raise InputError(f"a symbolic link: {links[0]}", corpus, remedy="Replace it with the file.")
    manifest = outcome.manifest
    stated = manifest.licenses
    unknown = [name for name in sorted(manifest.sources) if stated.get(name, NOT_STATED) == NOT_STATED]
    if unknown:
        raise InputError(
            f"no license is stated for {', '.join(unknown[:10])}",
            corpus / MANIFEST_NAME,
            remedy="Set ingest.sources[].license or publish.licenses, and publish again.",
        )
    return manifest


def push(corpus: Path, manifest: Manifest, repository: str, private: bool = False) -> str:
    """Upload a corpus to a dataset repository in one commit, with its card as README.md. Returns its address.

    Raises InputError if the Hub refuses, or if the repository exists and is public although ``private`` is
    set; MissingPackageError if huggingface_hub is not installed.
    """
    hub = require("huggingface_hub", "hub")
    api = hub.HfApi(library_name="paraforge")
    with _explain_errors(repository):
        exists = private and api.repo_exists(repository, repo_type=_KIND)
        if exists and not api.repo_info(repository, repo_type=_KIND).private:
            remedy = "Make it private on the Hub, or use another name."
            raise InputError("the repository exists and is public", repository, remedy=remedy)
        url = api.create_repo(repository, repo_type=_KIND, private=private, exist_ok=True)
        listed = [file.path for file in (*manifest.files, manifest.wrong_pairs) if file is not None]
        sent = {name: corpus / name for name in (*listed, MANIFEST_NAME, INDEX_NAME, CONFIGS_NAME)}
        sent["README.md"] = card_path(corpus)
        remote_files = api.list_repo_files(repository, repo_type=_KIND)
        # Data files of an earlier upload are deleted if this corpus lacks them.
        old = [
            name
            for name in remote_files
            if MANIFEST_NAME in remote_files and name.endswith((".parquet", ".arrow"))
        ]
        operations = [hub.CommitOperationAdd(name, path) for name, path in sent.items()]
        operations += [hub.CommitOperationDelete(name) for name in old if name not in sent]
        if read_manifest(corpus) != manifest:  # the files were read since it was verified
            raise InputError(
                "the corpus was rebuilt in the meantime", corpus, remedy="Run the same command again."
            )
        message = f"{manifest.rows:,} pairs: {manifest.signature}"[:500]
        api.create_commit(repository, operations, commit_message=message, repo_type=_KIND)
    return str(url)


@contextmanager
def _explain_errors(repository: str) -> Iterator[None]:
    """Turn exceptions of the Hub's library into errors for the user."""
    try:
        yield
    except ParaforgeError:
        raise
    except Exception as error:
        # The library raises RuntimeError for a failed upload, with the real error as its cause.
        cause = error.__cause__ if type(error) is RuntimeError and error.__cause__ else error
        raise InputError(f"the Hub reports: {first_line(cause)}", repository, remedy=_REMEDY) from error
