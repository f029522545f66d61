"""A published corpus on the Hugging Face Hub: what goes there, whether it may, and the upload."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, first_line, require
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.store import INDEX_NAME
from paraforge.corpus.publication.card import CARD_NAME, CONFIGS_NAME
from paraforge.corpus.publication.manifest import MANIFEST_NAME, Manifest
from paraforge.corpus.publication.parameters import NOT_STATED
from paraforge.corpus.publication.verification import verify

_KIND: Any = "dataset"
# Files that are sent before what is finished is shown.
_AT_ONCE = 8
# Of terms that forbid to pass on what is made of a text, or say nothing.
_FORBIDDEN = re.compile(
    r"(?<![a-z])nd(?![a-z])|no[- ]?deriv|proprietary|all rights reserved|"
    r"\b(non?|not|never|without)\b.{0,30}redistribut|"
    r"redistribut\w*\W+(\w+\W+)?(not|never|prohibited|forbidden|disallowed)\b|"
    rf"^{NOT_STATED}$|^\W*$|\bno[- ]licen[cs]e|\buse only\b|^\W*(see|ask|refer|check)\b|"
    r"\b(unknown|unclear|unspecified|undefined|unlicen[cs]ed|none|other|private|confidential|tbd|todo|n/?a)\b",
    re.IGNORECASE,
)
# What a new repository has.
_HARMLESS = (".gitattributes",)
_LIBRARIES = ("huggingface_hub", "httpx", "httpx2", "httpcore", "requests", "urllib3")


@dataclass(frozen=True)
class Push:
    """What would go: the path of each file by its name in the repository. The card is README.md there."""

    manifest: Manifest
    files: dict[str, Path]

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(path.stat().st_size for path in self.files.values())


def plan_push(corpus: Path, licences_checked: bool = False) -> Push:
    """Verify a corpus and list its files.

    licences_checked: whether somebody has made sure that licences allow it that say nothing of it.

    Raises InputError: damaged; or a source has no licence, or one that forbids changed copies.
    """
    outcome = verify(corpus)
    if outcome.problems or outcome.manifest is None:
        raise outcome.problems[0]
    manifest = outcome.manifest
    doubtful = [
        f"{source}: {licence}"
        for source in sorted(manifest.sources)
        if _FORBIDDEN.search(licence := manifest.licences.get(source, NOT_STATED))
    ]
    if doubtful and not licences_checked:
        raise InputError(
            f"the licences of these sources do not allow it, or do not say so: {'; '.join(doubtful[:10])}"
            + (f"; and {len(doubtful) - 10} more" if len(doubtful) > 10 else ""),
            corpus / MANIFEST_NAME,
            remedy="Name them in ingest.sources[].licence or publish.licences and publish again; or, if you "
            "know that you may, give --licences-checked.",
        )
    listed = [file.path for file in (*manifest.files, manifest.wrong_pairs) if file is not None]
    files = {name: corpus / name for name in (*listed, MANIFEST_NAME, INDEX_NAME, CONFIGS_NAME)}
    card = next(path for name in (CARD_NAME, "README.md") if (path := corpus / name).is_file())
    return Push(manifest, {"README.md": card, **files})


def push(planned: Push, repository: str, private: bool = False, force: bool = False) -> str:
    """Upload to a dataset repository, in one commit; gives its address.

    What the Hub already has is not sent again, so that an upload that was cut off resumes. Files of an
    earlier corpus of this program that this one lacks are removed.

    repository: ``USER/NAME``; made if need be. private: whether it is made private.
    force: overwrite files in a repository that no corpus of this program is in.

    Raises:
        InputError: no token, no right to write, no network, or a repository with other files.
        MissingPackageError: huggingface_hub is not installed.
    """
    hub = require("huggingface_hub", "hub")
    require("huggingface_hub.utils", "hub").disable_progress_bars()
    api = hub.HfApi(library_name="paraforge")
    with _explained(repository):
        url = api.create_repo(repository, repo_type=_KIND, private=private, exist_ok=True)
        present = {
            one.path
            for one in api.list_repo_tree(repository, repo_type=_KIND, recursive=True)
            if hasattr(one, "size")
        }
        gone = sorted(_earlier_files(api, repository, present) - planned.files.keys())
        strange = present - set(_HARMLESS)
        if strange and MANIFEST_NAME not in present and not force:
            raise InputError(
                f"there are other files in it: {', '.join(sorted(strange)[:5])}",
                repository,
                remedy="Name another repository, or give --force to put the corpus beside them.",
            )
        additions = [
            hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=str(path))
            for name, path in planned.files.items()
        ]
        with progress(total=len(additions), unit="files", description="push") as bar:
            for first in range(0, len(additions), _AT_ONCE):
                check_interrupt()
                some = additions[first : first + _AT_ONCE]
                api.preupload_lfs_files(repository, some, repo_type=_KIND, num_threads=2)
                bar.update(len(some))
        # One commit: nobody ever reads half of a corpus.
        api.create_commit(
            repository,
            [*additions, *(hub.CommitOperationDelete(path_in_repo=name) for name in gone)],
            repo_type=_KIND,
            commit_message=f"{planned.manifest.rows:,} pairs: {planned.manifest.signature}"[:500],
        )
    return str(url)


def _earlier_files(api: Any, repository: str, present: set[str]) -> set[str]:
    """The files that the repository's own manifest lists."""
    if MANIFEST_NAME not in present:
        return set()
    path = api.hf_hub_download(repository, MANIFEST_NAME, repo_type=_KIND)
    try:
        manifest = json.loads(Path(path).read_text(encoding="utf-8"))
        listed = {str(file["path"]) for file in manifest["files"]}
        if manifest.get("wrong_pairs"):
            listed.add(str(manifest["wrong_pairs"]["path"]))
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"its {MANIFEST_NAME} is not a corpus' manifest", repository, remedy="Name another repository."
        ) from error
    return listed & present


@contextmanager
def _explained(repository: str) -> Iterator[None]:
    """What the Hub's library raises, as an error for the user."""
    try:
        yield
    except Exception as error:
        # A failed upload is a RuntimeError, with what happened as its cause.
        told = error.__cause__ if type(error) is RuntimeError and error.__cause__ else error
        if type(told).__module__.partition(".")[0] not in _LIBRARIES and not isinstance(
            told, ConnectionError
        ):
            raise
        status = getattr(getattr(told, "response", None), "status_code", None)
        remedy = {
            401: "Log in with 'hf auth login', or set HF_TOKEN to a token with the right to write.",
            403: "The token has no right to write there: make one of kind 'write', or name your repository.",
            404: "The name is USER/NAME, and the user has to exist.",
        }.get(status or 0, "Run the same command again: what is there already is not sent twice.")
        raise InputError(f"the Hub says: {first_line(told)}", repository, remedy=remedy) from error
