"""Questions from outside: pulled from Metaculus and joined with their texts, or out of a pack."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from cards.pack import load_pack
from cards.source import first_instant, last_instant
from cli.running import Environment
from cli.system import system_clock, system_entropy
from forecasting.questions.manual_context import join_context, read_manual_context
from forecasting.questions.metaculus import MetaculusPost, read_post
from forecasting.questions.metaculus_client import BASE_URL, MetaculusClient
from forecasting.questions.question import ImportedSet, Question
from ledger.clock import format_moment
from ledger.errors import BadInputError

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_POLITE_S = 3.5
_MISSING = "Metaculus has no such post"


async def pull_questions(
    context_file: Path, post_ids: Sequence[int], environment: Environment, *, as_of: str | None
) -> ImportedSet:
    """Read the context file and join it with the resolutions of its posts.

    Raises:
        BadInputError: a row is missing or wrong, a post is not resolved, or Metaculus refuses.
    """
    context = read_manual_context(_read(context_file), where=str(context_file))
    missing = [post_id for post_id in post_ids if post_id not in context]
    if missing:
        # Before anything is pulled: nobody waits minutes to learn of a missing text.
        raise BadInputError(
            f"no context row for post {missing[0]}",
            where=str(context_file),
            remedy="Add its texts.",
        )
    posts = await _pull(post_ids, environment)
    retrieved_at = format_moment(system_clock())
    return join_context(context, posts, post_ids=post_ids, retrieved_at=retrieved_at, as_of=as_of)


async def _pull(post_ids: Sequence[int], environment: Environment) -> list[MetaculusPost]:
    base_url = environment.get("METACULUS_BASE_URL") or BASE_URL
    is_loopback = urlsplit(base_url).hostname in _LOOPBACK
    api2, posts = (
        MetaculusClient(
            environment.get("METACULUS_TOKEN", ""),
            sleep=asyncio.sleep,
            timer=time.perf_counter,
            entropy=system_entropy,
            form=form,
            base_url=base_url,
            # The service asks for a slow pace; a test server on this machine does not.
            interval_s=0.0 if is_loopback else _POLITE_S,
        )
        for form in ("api2", "posts")
    )
    try:
        return [await _pull_post(post_id, api2, posts) for post_id in post_ids]
    finally:
        await api2.close()
        await posts.close()


async def _pull_post(post_id: int, api2: MetaculusClient, posts: MetaculusClient) -> MetaculusPost:
    """Pull a post in the older form, and in the newer one where the older is not there."""
    try:
        data = await api2.fetch_post(post_id)
    except BadInputError as error:
        if error.what != _MISSING:
            raise
        data = await posts.fetch_post(post_id)
    return read_post(data, post_id=post_id, where=f"post {post_id}")


def pack_questions(name: str) -> ImportedSet:
    """Return a pack's resolved cards as questions with their labels.

    Raises:
        BadInputError: no such pack, or one without a resolved card.
    """
    pack = load_pack(name)
    entries = [card for card in pack.cards if card.private is not None]
    questions = tuple(
        Question(
            question_id=card.source.id,
            origin=card.source.source_class or pack.id,
            kind=card.source.kind,
            title=card.source.title,
            question=card.source.question,
            as_of=first_instant(card.source.as_of),
            deadline=None if card.source.deadline is None else last_instant(card.source.deadline),
            background=card.source.public_context,
            endpoints=card.source.endpoints,
            source_packet=card.source.source_packet,
            domain=card.source.domain,
            leakage_risk=card.source.leakage_risk,
            masking_rule=card.source.masking_rule,
            masks=card.source.masks,
        )
        for card in entries
    )
    labels = tuple(card.private for card in entries if card.private is not None)
    if not questions:
        raise BadInputError(f"the pack {name!r} has no resolved card", where="--pack")
    return ImportedSet(questions, labels)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInputError(
            f"cannot be read: {error.strerror}", where=str(path), remedy="Name a readable file."
        ) from error
