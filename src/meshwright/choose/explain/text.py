"""An explanation in sentences. Every number is one of its facts."""

from __future__ import annotations

from collections.abc import Iterator

from meshwright.choose import words
from meshwright.choose.explain.facts import Alternative, Bubble, Change, Difference, Explanation, Move, Side
from meshwright.choose.words import degrees, gib, part, seconds, share, traffic
from meshwright.spec.estimate import Estimate

_SHOWN_DIFFERENCES = 3
_WORDS = {"memory": ("needs", "more memory", "less memory"), "cost": ("costs", "more", "less")}
_SMALL = 0.0005
"""A smaller share is no difference."""


def sentences(said: Explanation) -> tuple[str, ...]:
    """What a reader should know, the most important first."""
    return (
        *headline(said),
        *problems(said),
        *memory(said),
        *communication(said),
        *time(said),
        *runner_up(said),
        *others(said),
        *changes(said),
    )


# -- the plan


def headline(said: Explanation) -> Iterator[str]:
    """What is explained, and how good it is."""
    explained, best = said.estimate, said.best
    yield from said.no_plan
    if explained is not None:
        yield _plan(said, explained)
    if said.gap is not None and best is not None:
        yield f"The best plan is {_named(best)}: {seconds(best.step_time_s)} a step{_gap(said)}."
    if said.unpinned is not None and said.unpinned.estimate is not None:
        free = said.unpinned.estimate
        yield f"Without what is pinned {_named(free)} would be best: {_compared(said, said.unpinned)}."


def problems(said: Explanation) -> Iterator[str]:
    """What is wrong with the plan."""
    for problem in said.estimate.problems if said.estimate is not None else ():
        fix = f"; {problem.fix}" if problem.fix else ""
        what = "The plan does not fit" if problem.rule == "memory" else f"The plan breaks the rule {problem.rule}"
        yield f"{what}: {problem.message}{fix}."


def _plan(said: Explanation, explained: Estimate) -> str:
    if not explained.valid or not explained.fits:
        return f"{_named(explained)} would take {seconds(explained.step_time_s)} a step."
    what = f"{_named(explained)} takes {seconds(explained.step_time_s)} a step"
    if said.gap is None and said.best is not None:
        return f"{what} and is the best plan found."
    if said.layouts_ahead:
        ahead = said.layouts_ahead
        others = "1 other set of degrees has" if ahead == 1 else f"{ahead} other sets of degrees have"
        return f"{what}; at least {others} a better plan."
    return f"{what}."


def _gap(said: Explanation) -> str:
    gap = said.gap
    if gap is None or gap.verdict != "lost":
        return ""
    return f", so the given one {_loses(said.objective, gap.behind)}: {reasons(said, gap)}"


def _named(each: Estimate) -> str:
    return degrees(each.plan)


# -- memory


def memory(said: Explanation) -> Iterator[str]:
    """What fits and what forced a split."""
    whole, last = said.memory[0], said.memory[-1]
    states = sum(whole.memory_bytes[name] for name in ("weights", "gradients", "optimizer"))
    need = f"The whole job on one accelerator would take {gib(whole.total_bytes)}; it has {gib(whole.capacity_bytes)}"
    if whole.fits:
        yield f"{need}, so memory forces no split."
        return
    forced = "model states alone" if states > whole.capacity_bytes else "model states and activations together"
    yield f"{need}. {_capital(forced)} are too much for it: weights, gradients and optimizer take {gib(states)}."
    fits = next((rung for rung in said.memory if rung.fits), None)
    if fits is not None and said.memory[-1].fits:
        yield f"{_capital(fits.change)} makes it fit; the whole plan takes {gib(last.total_bytes)}."


# -- links


def communication(said: Explanation) -> Iterator[str]:
    """What crosses which link, and what that would cost elsewhere."""
    for link in said.links:
        yield (
            f"{words.AXIS_NAMES[link.axis].capitalize()} parallel sends {traffic(link.wire_bytes_per_step)} over "
            f"{link.level} a step: {seconds(link.seconds)} of work, {seconds(link.hidden_s)} hidden, "
            f"{seconds(link.exposed_s)} exposed."
        )
    for move in said.moves:
        yield _moved(move, said.estimate)


def _moved(move: Move, estimate: Estimate | None) -> str:
    axis = words.AXIS_NAMES[move.axis].capitalize()
    where = f"{axis} parallel one level further {move.direction}, over {move.to_level}"
    if not move.order:
        return f"{where}: {move.reason}."
    change = move.step_time_s - estimate.step_time_s if estimate is not None else 0.0
    return (
        f"{where} (order {','.join(move.order)}): {seconds(move.exposed_s)} exposed, "
        f"the step {'+' if change >= 0 else '-'}{seconds(abs(change))}."
    )


# -- time


def time(said: Explanation) -> Iterator[str]:
    """The bubble, and what binds."""
    if said.bubble is not None:
        yield _bubble(said.bubble)
    bound, explained = said.binding, said.estimate
    if bound is None or explained is None:
        return
    best = [each for each in bound.twice_as_fast if each.step_time_s < explained.step_time_s * (1 - _SMALL)]
    gains = ", ".join(f"{each.name} -{share(1 - each.step_time_s / explained.step_time_s)}" for each in best)
    yield (
        f"The largest part of the step is {part(bound.part)} with {share(bound.share)}"
        + (f"; twice as fast would shorten the step by: {gains}." if gains else ".")
    )


def _bubble(bubble: Bubble) -> str:
    usual = ""
    if bubble.schedule != "1f1b":
        usual = f" (1f1b: {share(bubble.efficiency_1f1b)})"
    return (
        f"{bubble.schedule} with {bubble.num_micro_batches} micro-batches on {bubble.stages} stages keeps ranks "
        f"{share(bubble.efficiency)} busy{usual}; the bubble takes {seconds(bubble.idle_s)} of the step."
    )


# -- the others


def runner_up(said: Explanation) -> Iterator[str]:
    """The next best layout and what it loses by."""
    if said.runner_up is not None and said.runner_up.estimate is not None:
        yield f"The next best layout is {_named(said.runner_up.estimate)}: {_compared(said, said.runner_up)}."


def others(said: Explanation) -> Iterator[str]:
    """What became of each kind of layout."""
    for family in said.families:
        yield f"{family.title.capitalize()}: {verdict(said, family)}."
    if said.slogan is not None:
        yield f"The slogan, {said.slogan.title}: {verdict(said, said.slogan)}."


# -- what would change the answer


def changes(said: Explanation) -> Iterator[str]:
    """What would flip the choice; where nothing fits, what would make something fit."""
    for flip in said.flips or ():
        if flip.flips is None:
            then = "as far as was searched"
        else:
            then = f"at {amount(flip.flips.value, flip.unit)} {_then(flip.flips)}"
        stands = f"the choice stands {flip.direction} to {amount(flip.keeps.value, flip.unit)}"
        yield f"{_capital(flip.title)}, now {amount(flip.now, flip.unit)}: {stands}; {then}."
    if said.to_fit is not None:
        yield from (f"It would fit with {_change(each)}." for each in said.to_fit)
        if not said.to_fit:
            yield "No single change that was tried makes it fit."


def _change(each: Change) -> str:
    if each.estimate is None:
        return each.title
    then = f"{degrees(each.estimate.plan)} then takes {seconds(each.estimate.step_time_s)} a step"
    if not each.unit:
        return f"{each.title}: {then}"
    return f"{each.title}, {amount(each.value, each.unit)} instead of {amount(each.now, each.unit)}: {then}"


def _then(side: Side) -> str:
    if side.plan is None or side.step_time_s is None:
        return "there is no plan"
    return f"{degrees(side.plan)} is best, {seconds(side.step_time_s)} a step"


def amount(value: float, unit: str) -> str:
    """A quantity with its unit."""
    if unit == "bytes_per_s":
        return f"{traffic(value)}/s"
    if unit == "bytes":
        return gib(value)
    return f"{value:,.0f} {unit}"


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def verdict(said: Explanation, each: Alternative) -> str:
    """What became of an alternative."""
    if each.estimate is None:
        return each.reason
    if each.verdict == "chosen":
        return f"{_named(each.estimate)}, the best plan"
    return f"{_named(each.estimate)} {_compared(said, each)}"


def _compared(said: Explanation, each: Alternative) -> str:
    because = f" ({reasons(said, each)})" if each.differences else ""
    return f"{_loses(said.objective, each.behind)}{because}"


def _loses(objective: str, behind: float) -> str:
    if abs(behind) < _SMALL:
        return "is as good"
    verb, more, less = _WORDS.get(objective, ("takes", "longer", "less long"))
    return f"{verb} {share(abs(behind))} {more if behind > 0 else less}"


def reasons(said: Explanation, each: Alternative) -> str:
    """The largest differences in time. Where memory is what counts they are not why it loses, and are said to be of
    time."""
    found = ", ".join(because(one) for one in each.differences[:_SHOWN_DIFFERENCES])
    return f"in time {found}" if said.objective == "memory" and found else found


def because(each: Difference) -> str:
    """One difference: the part, by how much, and on which links."""
    sign = "+" if each.seconds > 0 else "-"
    over = f" on {' and '.join(each.levels)}" if each.levels else ""
    return f"{part(each.part)} {sign}{seconds(abs(each.seconds))}{over}"
