"""The part of a test ledger that a WorldFork run writes: worlds, forks, endpoints, claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ledger.events import branch, endpoint, world
from ledger.events.base import Payload


class WorldPages(ABC):
    """Methods of a Book that append events of worlds."""

    @abstractmethod
    def add(self, payload: Payload, stream: str = "log", **other: Any) -> int:
        """Append an event and return its seq."""

    def world(self, method: str, card_id: str, timeline: str = "root") -> int:
        """`world.initialized`."""
        return self.add(
            world.WorldInitialized(
                method=method,
                card_id=card_id,
                draw=1,
                timeline=timeline,
                actors=(
                    world.Actor(
                        id="hero",
                        kind="hero",
                        role="minister",
                        authority="",
                        interests="",
                        stance="",
                        share="0.25",
                    ),
                ),
                constraints=("No war.",),
                scored_endpoints=("yes", "no"),
                auxiliary_endpoints=(),
                graph=(
                    world.Edge(layer="trust", source="hero", target="hero", weight="1", reason=""),
                ),
                social_state={"mood": "calm"},
                seed_events=(world.SeedEvent(title="Vote", scheduled_tick=1, description=""),),
                branch_hypotheses=(
                    world.BranchHypothesis(
                        id="h", trigger="", path="", divergence_signal="", endpoint=None
                    ),
                ),
                endpoint_ledger=(world.LedgerRow(endpoint="yes", status="active", basis="open"),),
                rubric=(
                    world.RubricScore(
                        dimension="actors", score=3, pass_mark=2, judged_by="structure"
                    ),
                ),
            )
        )

    def tick(self, method: str, card_id: str, timeline: str = "root") -> int:
        """`tick.completed`."""
        return self.add(
            world.TickCompleted(
                method=method,
                card_id=card_id,
                draw=1,
                timeline=timeline,
                tick=1,
                decisions=("wait",),
                events=(),
                updates=(),
                review="continue",
                review_reasons="",
                summary="",
            )
        )

    def fork(
        self,
        method: str,
        card_id: str,
        moves: Mapping[str, int],
        children: Sequence[str] | None = None,
        parent: str = "root",
    ) -> int:
        """`branch.forked`: mass moved to each timeline of `moves`, negative from the parent."""
        return self.add(
            branch.BranchForked(
                method=method,
                card_id=card_id,
                draw=1,
                parent=parent,
                children=tuple(children or [name for name in moves if name != parent]),
                tick=1,
                inherited_up_to_tick=1,
                postings=tuple(
                    branch.Posting(timeline=name, mass_units=units) for name, units in moves.items()
                ),
                trigger_score="0.8",
                threshold="0.5",
                hypothesis="h",
                chosen_by="heuristic",
            )
        )

    def end(self, method: str, card_id: str, timeline: str, mass_units: int) -> int:
        """`timeline.ended`."""
        return self.add(
            branch.TimelineEnded(
                method=method,
                card_id=card_id,
                draw=1,
                timeline=timeline,
                how="completed",
                mass_units=mass_units,
                settled="yes",
                reason="",
            )
        )

    def claim(self, method: str, card_id: str) -> int:
        """`claim.recorded`."""
        return self.add(
            endpoint.ClaimRecorded(
                method=method,
                card_id=card_id,
                draw=1,
                claim="It rose.",
                timeline="root",
                tick=1,
                actor=None,
                source_text=None,
                state_update=None,
                endpoint="yes",
                confidence="0.5",
                rests_on=(1,),
                grounded=True,
            )
        )

    def settle(self, method: str, card_id: str, timeline: str = "root") -> int:
        """`endpoint.settled`."""
        return self.add(
            endpoint.EndpointSettled(
                method=method,
                card_id=card_id,
                draw=1,
                timeline=timeline,
                endpoint="yes",
                status="realized",
                at_deadline=True,
                basis="It stands.",
            )
        )

    def touch_endpoints(self, method: str, card_id: str) -> None:
        """`endpoint.updated`, `endpoint.settled` and `endpoint.rejected`."""
        cell: dict[str, Any] = {"method": method, "card_id": card_id, "draw": 1}
        self.add(
            endpoint.EndpointUpdated(
                **cell,
                timeline="root",
                endpoint="yes",
                before="active",
                after="weakened",
                evidence_for=(),
                evidence_against=("a delay",),
                basis="Talks stalled.",
            )
        )
        self.settle(method, card_id)
        self.add(
            endpoint.EndpointRejected(
                method=method,
                card_id=card_id,
                endpoint="aux",
                wording="Else.",
                reason="Not binary.",
            )
        )
