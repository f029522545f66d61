"""What is said of published corpora that are merged: names of their sources, the manifest, and the card."""

import logging
from collections.abc import Sequence
from itertools import count

import pyarrow as pa

from paraforge.base.files import hash_json
from paraforge.base.markdown import clip
from paraforge.corpus.publication.card import card_parameters
from paraforge.corpus.publication.datasets import Dataset
from paraforge.corpus.publication.groups import GROUP
from paraforge.corpus.publication.manifest import KEPT, MERGE, Manifest, PublishedFile, describe_columns
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.statistics import Statistics
from paraforge.corpus.selection.fate import add_counts
from paraforge.interface.query.diff import manifest_differences
from paraforge.versions import __version__

logger = logging.getLogger(__name__)

# What makes scores of one name mean other things.
_TELLING = ("paraforge", "schema_version", "translate.", "score.", "score-", "select.")


def source_names(manifests: Sequence[Manifest]) -> list[dict[str, str]]:
    """New names of those sources of each corpus that an earlier one has, too, which no other source has."""
    taken = {source for manifest in manifests for source in manifest.sources}
    earlier: set[str] = set()
    names = []
    for place, manifest in enumerate(manifests, 1):
        new = {}
        for source in sorted(earlier & set(manifest.sources)):
            candidates = (f"{source}.{number}" for number in count(place))
            new[source] = next(name for name in candidates if name not in taken)
            taken.add(new[source])
        earlier |= set(manifest.sources)
        names.append(new)
    return names


def warn_of_differences(corpora: Sequence[Dataset], manifests: Sequence[Manifest]) -> None:
    """Name what was made otherwise than the first corpus, so that its scores mean other things."""
    for corpus, manifest in zip(corpora[1:], manifests[1:], strict=True):
        differing = [
            f"{key} ({clip(str(other), 16)}, not {clip(str(first), 16)})"
            for key, (first, other) in manifest_differences(manifests[0], manifest).items()
            if key.startswith(_TELLING)
        ]
        if differing:
            logger.warning(
                "%s was made otherwise than %s: %s%s",
                corpus.directory,
                corpora[0].directory,
                ", ".join(differing[:5]),
                f" and {len(differing) - 5} more; see 'paraforge diff'" if len(differing) > 5 else "",
            )


def merged_group_score(corpora: Sequence[Dataset], manifests: Sequence[Manifest]) -> float | None:
    """From which paraphrase score on a translation joins pairs: the highest of the corpora with groups, which
    is said where they differ; None without any."""
    default = PublishParameters().group_score
    found = {
        corpus.directory: default if manifest.group_score is None else manifest.group_score
        for corpus, manifest in zip(corpora, manifests, strict=True)
        if GROUP in corpus.schema.names
    }
    scores = sorted({score for score in found.values() if score is not None})
    if len(scores) > 1:
        listed = ", ".join(f"{score:g} in {directory}" for directory, score in found.items())
        logger.warning("groups of %s: %g is taken; --group-score sets another", listed, scores[-1])
    return scores[-1] if scores else None


def merged_manifest(
    manifests: Sequence[Manifest],
    names: Sequence[dict[str, str]],
    files: list[PublishedFile],
    statistics: Statistics,
    schema: pa.Schema,
    parameters: PublishParameters,
    group_score: float | None,
) -> Manifest:
    """The manifest: counts add up, steps that all went through alike are kept, the others stand with their
    corpus."""
    for manifest, new in zip(manifests, names, strict=True):
        renamed = {new.get(source, source): counts for source, counts in manifest.sources.items()}
        add_counts(statistics.sources, renamed, kept=False)
        add_counts(statistics.pivots, manifest.pivots, kept=False)
    statistics.counts.check("merge")
    first, *others = manifests
    shared = {
        name: step
        for name, step in first.steps.items()
        if all(other.steps.get(name) == step for other in others)
    }
    corpora = [
        {
            "name": manifest.name,
            "signature": manifest.signature,
            "sha256": manifest.as_dict()["sha256"],
            "rows": manifest.rows,
            "paraforge": manifest.version,
            "renamed": new,
            "steps": {name: step for name, step in manifest.steps.items() if name not in shared},
        }
        for manifest, new in zip(manifests, names, strict=True)
    ]
    digests = "+".join(hash_json(manifest.signature)[:8] for manifest in manifests)
    return Manifest(
        content=KEPT,
        name=parameters.name,
        signature=f"merged:{digests}|v:{__version__}",
        counts=statistics.counts,
        sources=statistics.sources,
        pivots=statistics.pivots,
        files=files,
        columns=describe_columns(schema),
        steps={**shared, MERGE: {"corpora": corpora}},
        licences=parameters.licences,
        group_score=group_score,
    )


def merged_parameters(
    corpora: Sequence[Dataset], manifests: Sequence[Manifest], names: Sequence[dict[str, str]], name: str
) -> PublishParameters:
    """What the card says: all languages, tags and licences; a source with two licences has both."""
    cards = [
        card_parameters(manifest, corpus.directory)
        for manifest, corpus in zip(manifests, corpora, strict=True)
    ]
    licences: dict[str, dict[str, None]] = {}
    for manifest, new in zip(manifests, names, strict=True):
        for source, licence in manifest.licences.items():
            licences.setdefault(new.get(source, source), {})[licence] = None
    whole = {card.licence for card in cards}
    return PublishParameters(
        name=(name or " + ".join(manifest.name for manifest in manifests))[:200],
        licence=whole.pop() if len(whole) == 1 else "other",
        licences={source: " and ".join(found) for source, found in licences.items()},
        languages=list(dict.fromkeys(language for card in cards for language in card.languages)),
        tags=list(dict.fromkeys(tag for card in cards for tag in card.tags)),
    )
