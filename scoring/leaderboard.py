"""leaderboard.md: the score table and what it may be taken for, as Markdown for a reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ledger.events.plan import Plan

JsonDict = dict[str, Any]


def render_leaderboard(scores: JsonDict, plan: Plan) -> str:
    """Render the content of scores.json as one Markdown page."""
    blocks = [
        f"# {plan.title}",
        _provenance(scores),
        "## Leaderboard",
        format_table(
            ("rank", "method", "role", "n", "Brier", "log", "ECE", "AUC", "MCB", "DSC"),
            _rank_rows(scores, plan),
        ),
        f"Lower Brier, log and ECE are better. UNC of the Brier score: {_unc(scores)}. ECE ranks"
        " nothing: a constant forecast at the base rate has none.",
        "## Paired comparisons",
        *(_comparison(pair) for pair in scores["paired"]),
        "## Multiplicity",
        _multiplicity(scores["multiplicity"]),
        "## Failure anatomy",
        _anatomy(scores, plan),
        "## Cards",
        _cards(scores["cards"]),
        f"Examples by `{plan.example_selection.rule}`: {', '.join(scores['examples']) or 'none'}.",
        f"Looks: {scores['looks']['confirmatory']} registered comparisons, "
        f"{scores['looks']['exploratory']} exploratory.",
    ]
    return "\n\n".join(blocks) + "\n"


def format_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a Markdown table; None is a dash."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value).replace("|", "\\|")


def _provenance(scores: JsonDict) -> str:
    return (
        f"Replayed from a log of {scores['ledger']['size']} events, root"
        f" `{scores['ledger']['root']}`, under plan `{scores['plan']['plan_id']}` (event"
        f" {scores['plan']['seq']})."
    )


def _rank_rows(scores: JsonDict, plan: Plan) -> Iterator[tuple[object, ...]]:
    roles = {method.id: method.role for method in plan.methods}
    for rank, method in enumerate(scores["leaderboard"], 1):
        row = scores["scores"][method]
        n = f"{row['n']} ({row['n_imputed']} imputed)" if row["n_imputed"] else row["n"]
        figures = (row[name] for name in ("brier", "log", "ece", "auc", "mcb", "dsc"))
        yield (rank, method, roles[method], n, *figures)


def _unc(scores: JsonDict) -> str:
    values = {_cell(row["unc"]) for row in scores["scores"].values()}
    return ", ".join(sorted(values))


def _comparison(pair: JsonDict) -> str:
    kind = "primary, confirmatory" if pair["primary"] else pair["status"]
    title = f"### {pair['a']} against {pair['b']} ({kind})"
    if not pair["n"]:
        return f"{title}\n\nNot computable: no card is scored."
    boot = pair["bootstrap"]
    level = f"{float(boot['level']):.0%}"
    sentences = [
        f"Mean {pair['metric']} difference {pair['mean_difference']:.4f} over {pair['n']} cards;"
        f" positive favours {pair['a']}.",
        f"{level} interval: percentile {_interval(boot['percentile'])} and BCa"
        f" {_interval(boot['bca'])} from {boot['resamples']} resamples, seed {boot['seed']},"
        f" {boot['generator']}; exact limit for infinitely many resamples"
        f" {_interval(boot['limit'])}, which needs no seed. An interval published without generator"
        " and seed can be checked against the limit alone.",
        f"Sign-flip permutation p = {_p(pair['permutation_p'])} ({pair['permutation_method']});"
        f" Wilcoxon p = {_p(pair['wilcoxon_p'])}.",
    ]
    rows = [
        (f"{row['epsilon']:g}", row["a_lower"], row["b_lower"], row["ties"], _p(row["p"]))
        for row in pair["sign"]
    ]
    head = ("tie if within", f"{pair['a']} lower", f"{pair['b']} lower", "ties", "sign test p")
    return "\n\n".join([title, " ".join(sentences), format_table(head, rows)])


def _interval(ends: Sequence[float] | None) -> str:
    return "not computable" if ends is None else f"[{ends[0]:.4f}, {ends[1]:.4f}]"


def _p(value: float | None) -> str:
    return "not computable" if value is None else f"{value:.4f}"


def _multiplicity(family: JsonDict) -> str:
    lines = [
        f"Family: {len(family['pairs'])} comparisons ({family['family']}). Confirmatory correction:"
        f" {family['confirmatory']}; exploratory: {family['exploratory']}."
    ]
    rows = []
    for test, table in family["tests"].items():
        for column in ("raw", "adjusted", "exploratory"):
            known = [p for p in table[column] or [] if p is not None]
            rows.append((test, column, _p(min(known)) if known else None))
    return "\n\n".join([*lines, format_table(("test", "p-values", "smallest"), rows)])


def _anatomy(scores: JsonDict, plan: Plan) -> str:
    pair = next(c for c in plan.comparisons if c.primary)
    rows = [
        (
            row["card"],
            row["label"],
            row["p_a"],
            row["p_b"],
            f"{row['difference']:.3g}",
            ", ".join(row["tags"]) or None,
        )
        for row in scores["failure_anatomy"]
    ]
    head = ("card", "label", f"p of {pair.a}", f"p of {pair.b}", "difference", "tags")
    return f"Cards on which {pair.b} has the lower Brier loss.\n\n{format_table(head, rows)}"


def _cards(cards: JsonDict) -> str:
    text = (
        f"{cards['scored']} of {cards['registered']} registered cards are scored; missing"
        f" predictions: {cards['policy']}."
    )
    if not cards["excluded"]:
        return text
    return f"{text}\n\n{format_table(('card', 'not scored because'), cards['excluded'].items())}"
