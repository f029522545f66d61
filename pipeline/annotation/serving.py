"""Running the pages: an address to listen on, and an orderly end."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from paraforge.annotation.draw import PAIRS_PER_BAND, SEED, draw_pairs, open_for_annotation, origin_of
from paraforge.annotation.store import AnnotationStore, create_store
from paraforge.errors import InputError, require

HOST, PORT = "127.0.0.1", 8377
EXTRA = "annotate"
_THREADS = 8


def open_evaluation(
    corpus: Path | None, database: Path, per_band: int | None, seed: int | None, with_rejected: bool | None
) -> tuple[AnnotationStore, bool]:
    """The evaluation in ``database``, drawn from ``corpus`` where there is none yet.

    Args:
        corpus: directory of a published corpus; None to continue with a database.
        per_band, seed, with_rejected: of the draw; None for the default, or for what the database has.

    Returns:
        The store, and whether it is new.

    Raises:
        InputError: the database was drawn otherwise than asked for, or there is neither.
    """
    if not database.exists():
        if corpus is None:
            raise InputError("no such database", database, remedy="Name a corpus to draw pairs from.")
        datasets = open_for_annotation(corpus, with_rejected is not False)
        draw = draw_pairs(datasets, corpus, per_band or PAIRS_PER_BAND, SEED if seed is None else seed)
        return create_store(database, draw), True
    store = AnnotationStore(database)
    other = "Go on without this option, or name another --database to begin anew."
    if corpus is not None:
        asked = bool(len(store.draw.origin.manifests) > 1) if with_rejected is None else with_rejected
        found = origin_of(open_for_annotation(corpus, asked), corpus).manifests
        if found != store.draw.origin.manifests:
            raise InputError(
                f"drawn from another corpus than {corpus} is now ({store.draw.origin.signature})",
                database,
                remedy="Name another --database to start a new evaluation, or continue this one: "
                f"paraforge annotate serve --database {database}",
            )
    if per_band is not None and per_band != store.draw.per_band:
        raise InputError(f"drawn with --count {store.draw.per_band}", database, remedy=other)
    if seed is not None and seed != store.draw.seed:
        raise InputError(f"drawn with --seed {store.draw.seed}", database, remedy=other)
    return store, False


def serve(
    store: AnnotationStore,
    host: str = HOST,
    port: int = PORT,
    allowed: Sequence[str] = (),
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until Ctrl-C or SIGTERM. Killed at any time, no answer that a page called saved is lost.

    Args:
        host: address to bind to.
        port: 0 for any free one.
        allowed: further names that browsers know this server by.
        announce: called with the address once it answers.

    Raises:
        InputError: the address cannot be had.
        MissingPackageError: the extra ``annotate`` is not installed.
    """
    require("flask", EXTRA)
    waitress = require("waitress", EXTRA)
    from paraforge.annotation.security import HostPolicy
    from paraforge.annotation.server import create_app

    app = create_app(store, HostPolicy(host, allowed))
    try:
        server = waitress.create_server(
            app, host=host, port=port, threads=_THREADS, ident=None, clear_untrusted_proxy_headers=True
        )
    except (OSError, ValueError) as error:
        busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise InputError(
            f"cannot listen on {host}, port {port}: {error}",
            remedy="Something else has this port; --port 0 takes a free one." if busy else None,
        ) from error
    previous = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        bracketed = f"[{host}]" if ":" in host else host
        # A name may have several addresses: waitress then listens on all of them.
        bound = getattr(server, "effective_port", None) or server.effective_listen[0][1]
        announce(f"http://{bracketed}:{bound}/")
        server.run()
    finally:
        server.close()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _end(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
