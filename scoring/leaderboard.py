"""leaderboard.md: the score table and what it may be taken for, as Markdown for a reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from ledger.events.plan import Plan

JsonDict = dict[str, Any]


def render_leaderboard(scores: JsonDict, plan: Plan) -> str:
    """Render the content of scores.json as one Markdown page."""
    blocks = [
        f"# {_line(plan.title)}",
        _provenance(scores),
        "## Leaderboard",
        format_table(
            ("rank", "method", "role", "n", "Brier", "log", "ECE", "AUC", "MCB", "DSC"),
            _rank_rows(scores, plan),
        ),
        f"Lower Brier, log and ECE are better. UNC of the Brier score: {_unc(scores)}. ECE ranks"
        " nothing: a constant forecast at the base rate has none.",
        _metrics(scores["metrics"]),
        "## Paired comparisons",
        *(_comparison(pair, scores["plan"]) for pair in scores["paired"]),
        "## Multiplicity",
        _multiplicity(scores["multiplicity"]),
        "## Failure anatomy",
        _anatomy(scores, plan),
        "## Cards",
        _cards(scores),
        f"Examples by `{plan.example_selection.rule}`: {', '.join(scores['examples']) or 'none'}.",
        _looks(scores["looks"]),
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
    return f"{value:.4f}" if isinstance(value, float) else _line(str(value)).replace("|", "\\|")


def _line(text: str) -> str:
    """Bring text from outside onto one line: a line feed would end a heading or a table."""
    return " ".join(text.split())


def _provenance(scores: JsonDict) -> str:
    plan = scores["plan"]
    amended = f", amended {plan['amendments']} times" if plan["amendments"] else ""
    return (
        f"Replayed from a log of {scores['ledger']['size']} events, root"
        f" `{scores['ledger']['root']}`, under plan `{plan['plan_id']}` (event {plan['seq']}"
        f"{amended}).\n\n{_registration(plan)}"
    )


def _registration(plan: JsonDict) -> str:
    known, passed = plan["cards_with_deadline"], plan["deadlines_passed"]
    when = f"The plan dates from {plan['registered_at'][:10]} by the clock of this log"
    if not known:
        return f"{when}; no card has a deadline."
    if plan["retrospective"]:
        return (
            f"Registered after the last deadline: retrospective. {when}, the last deadline from"
            f" {plan['last_deadline'][:10]}. It fixes what is computed; it does not show that these"
            " choices were made before outcomes could be known."
        )
    if passed:
        return f"{when}, after the deadlines of {passed} of {known} cards."
    return f"{when}, before every deadline."


def _metrics(metrics: JsonDict) -> str:
    secondary = ", ".join(metrics["secondary"]) or "none"
    text = f"Primary metric: {metrics['primary']}. Registered secondary metrics: {secondary}."
    if not metrics["exploratory"]:
        return text
    return f"{text} Computed besides, exploratory: {', '.join(metrics['exploratory'])}."


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


def _comparison(pair: JsonDict, plan: JsonDict) -> str:
    kind = f"primary, {pair['status']}" if pair["primary"] else pair["status"]
    if pair["status"] == "confirmatory" and plan["retrospective"]:
        kind += " under a retrospective plan"
    title = f"### {pair['a']} against {pair['b']} ({kind})"
    if not pair["n"]:
        return f"{title}\n\nNot computable: no card is scored."
    boot = pair["bootstrap"]
    sentences = [
        f"Mean {pair['metric']} difference {pair['mean_difference']:.4f} over {pair['n']} cards;"
        f" positive favours {pair['a']}.",
        f"{_percent(boot['level'])} interval: percentile {_interval(boot['percentile'])} and BCa"
        f" {_interval(boot['bca'])} from {boot['resamples']:,} resamples, seed {boot['seed']},"
        f" {boot['generator']}; limit for infinitely many resamples {_limit(boot, 'limit')}, which"
        f" needs no seed ({boot['limit_method']}, tolerance {boot['limit_tolerance']:g}).",
        f"Sign-flip permutation p = {_p(pair['permutation_p'])} ({pair['permutation_method']});"
        f" Wilcoxon p = {_p(pair['wilcoxon_p'])}.",
    ]
    if power := pair["power"]:
        needed = power["cards_needed"]
        sentences.append(
            f"With {pair['n']} cards a paired t test has {power['power']:.0%} power for a"
            f" difference of {power['detectable_difference']:.3f}; the one seen would need"
            f" {f'{needed:,}' if needed is not None else 'over ten million'} cards."
        )
    rows = [
        (f"{row['epsilon']:g}", row["a_lower"], row["b_lower"], row["ties"], _p(row["p"]))
        for row in pair["sign"]
    ]
    head = ("tie if within", f"{pair['a']} lower", f"{pair['b']} lower", "ties", "sign test p")
    blocks = [title, " ".join(sentences), *_decision(pair)]
    blocks += [describe_published(item, boot) for item in pair["published"]]
    return "\n\n".join([*blocks, format_table(head, rows)])


def _decision(pair: JsonDict) -> Iterator[str]:
    decision = pair["decision"]
    if decision is None:
        return
    adjusted = decision["adjusted_p"]
    text = f"Registered test: {decision['test']}, p = {_p(decision['p'])}"
    if adjusted is not None:
        text += f", {_p(adjusted)} after correction in its family"
    if decision["significant"] is None:
        yield f"{text}; not computable."
        return
    word = "significant" if decision["significant"] else "not significant"
    yield f"{text}: {word} at {decision['level']}."


def describe_published(item: JsonDict, boot: JsonDict) -> str:
    """Say which of the replayed intervals a published one is, to the digits it prints.

    Args:
        item: a row of a comparison's `published` in scores.json.
        boot: the same comparison's `bootstrap`.
    """
    printed = f"The published interval [{item['low']}, {item['high']}] ({_line(item['source'])})"
    drawn = f"{boot['resamples']:,} resamples with seed {boot['seed']}"
    names = {
        "limit": "the limit for infinitely many resamples",
        "limit_bca": "the BCa limit for infinitely many resamples",
        "percentile": f"the percentile interval of {drawn}",
        "bca": f"the BCa interval of {drawn}",
    }
    agrees = [text for kind, text in names.items() if kind in item["agrees"]]
    if not agrees:
        return (
            f"{printed} is none of the replayed ones: percentile {_interval(item['percentile'])}"
            f" and BCa {_interval(item['bca'])} from {drawn}, limit {_limit(item, 'limit')}."
        )
    text = f"{printed} is {' and '.join(agrees)}"
    if not {"percentile", "bca"} & set(item["agrees"]):
        text += f"; {drawn} give {_interval(item['percentile'])}, which do not print so"
    return f"{text}."


def _percent(level: str) -> str:
    """Write a level such as 0.95 as 95%, exactly."""
    return f"{format(Decimal(level).scaleb(2).normalize(), 'f')}%"


def _interval(ends: Sequence[float] | None, places: int = 4) -> str:
    if ends is None:
        return "not computable"
    return f"[{ends[0]:.{places}f}, {ends[1]:.{places}f}]"


def _limit(boot: JsonDict, kind: str) -> str:
    """Write a limit with no more digits than its tolerance carries."""
    places = 4
    while places and boot["limit_tolerance"] > 0.5 * 10.0**-places:
        places -= 1
    return _interval(boot[kind], places)


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
            ", ".join(row["imputed"]) or None,
        )
        for row in scores["failure_anatomy"]
    ]
    head = ("card", "label", f"p of {pair.a}", f"p of {pair.b}", "difference", "tags", "imputed")
    return f"Cards on which {pair.b} has the lower Brier loss.\n\n{format_table(head, rows)}"


def _cards(scores: JsonDict) -> str:
    cards = scores["cards"]
    value = f" with {cards['imputed_value']}" if cards["imputed_value"] is not None else ""
    blocks = [
        f"{cards['scored']} of {cards['registered']} registered cards are scored; missing"
        f" predictions: {cards['policy']}{value}."
    ]
    rows = [
        (method, reason, count)
        for method, row in scores["scores"].items()
        for reason, count in row["missing"].items()
    ]
    if rows:
        blocks.append(format_table(("method without prediction", "because", "cards"), rows))
    if scores["withheld_events"]:
        blocks.append(f"{len(scores['withheld_events'])} events of the log are redacted.")
    if cards["excluded"]:
        blocks.append(format_table(("card", "not scored because"), cards["excluded"].items()))
    return "\n\n".join(blocks)


def _looks(looks: JsonDict) -> str:
    return (
        f"Looks: {looks['confirmatory']} registered comparisons, {looks['exploratory']} exploratory"
        f" ones here; {looks['published_reports']} reports published before, with"
        f" {looks['published_exploratory']} exploratory looks."
    )
