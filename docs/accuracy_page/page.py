"""The text of accuracy.md around its tables, and the README's block."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from meshwright.measure.catalog_fit import NOISY
from meshwright.measure.errors import Errors, errors_by, step_times
from meshwright.measure.ranges_fit import INSIDE, fit_accuracy
from meshwright.measure.sweeps import APART as APART_BY
from meshwright.measure.sweeps import LEAST_LAYOUTS

from . import choices, constants, memory, weak
from . import step_times as times
from .ablation import Ablation, errors_by_source
from .evidence import LONGEST, Evidence, noise_floors
from .markdown import counted, names, percent, regret, signed, whole_percent

WRITTEN = "<!-- Written by `make accuracy`; a change by hand is lost. -->"

LEAST_INSIDE, MOST_INSIDE = 0.72, 0.9
"""Share of left-out rows that ranges should hold: fewer, and they promise too much; more, and they are too wide."""


@dataclass(frozen=True)
class Page:
    """Everything that the text needs."""

    evidence: Evidence
    ablations: tuple[Ablation, ...]

    @property
    def headline(self) -> times.Headline:
        return times.headline(self.evidence.left_out, self.evidence.taught)

    @property
    def base(self) -> dict[str, Errors]:
        """Left-out errors by source and of their mean, as ablations are held against them."""
        return errors_by_source(self.evidence.left_out)

    def text(self) -> str:
        sections = (
            _opening, _headline, _sources, _pictures, _choices, _memory, _apart, _constants, _ranges, _weak, _repeat,
        )  # fmt: skip
        return "\n\n".join([WRITTEN, *(section(self) for section in sections)]) + "\n"


def readme_block(page: Page) -> str:
    """What the README says: one paragraph."""
    found, choice, peak = page.headline, _mean_choice(page), _peak(page)
    text = (
        f"Predicted by constants that never saw their source, the step times of {found.mean.covered:,} published runs "
        f"from {len(found.sources)} sources are off by {percent(found.mean.median)} in the median and by "
        f"{percent(found.mean.p90)} at the 90th percentile, averaged over the sources. Of layouts that a source "
        f"measured for one job, the one predicted to be fastest takes {regret(choice.mean_regret)} times as long as "
        f"the one that was. Peak memory is off by {percent(peak.median)} in the median. "
        "[How accurate](docs/accuracy.md) has every source, what is not counted, and where predictions are poor."
    )
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


def _opening(page: Page) -> str:
    found = page.evidence
    rows = len({each.row.row_id for each in found.training})
    sources = len({each.row.source for each in found.training})
    return (
        "# How accurate\n\n"
        f"{counted(rows, 'row')} of published training runs from {sources} sources, and {len(found.memory):,} of their "
        "memory, each beside what Meshwright predicts for it. Nothing here was measured by this project. An error is "
        "|predicted ÷ measured − 1| of the step time; a bias is the median one with its sign, + where predictions are "
        "too slow.\n\n"
        "**Left out** means: the constants were fitted to all other sources, from what was known before any training "
        "run was seen, and then asked about this one. **In-sample** means: predicted with the catalog's constants, "
        "which know all sources. A prediction for a cluster of your own is like the first.\n\n"
        "Only constants are left out. Which terms the model has was decided with all sources in view, and so were a "
        "few numbers that nothing else tells: the ratios between accelerators of one attention kernel and the time of "
        "its backward, host times to launch a layer, and the memory of buffers. Expect a source that nobody has seen "
        "to be somewhat worse."
    )


def _headline(page: Page) -> str:
    found, evidence = page.headline, page.evidence
    flagged = [each for each in step_times(evidence.training) if "flags" in each.row.cells]
    profiled = sorted({each.row.source for each in evidence.profiled})
    noisy = "; ".join(f"{name}: {NOISY[name]}" for name in evidence.noisy)
    open_layout = _without_layout(page)
    return (
        "## In short\n\n"
        f"16-bit training on widths that fill tiles, sequences of up to {LONGEST:,} tokens, from rows that state their "
        "whole layout. Every source counts once, however many rows it has.\n\n"
        f"{times.headline_table(found)}\n\n"
        f"{times.headline_source_table(found)}\n\n"
        "Not counted:\n\n"
        f"- {counted(len(flagged), 'row')} that the data flag, mostly since the source contradicts itself. The "
        "exception are the only runs on B200, whose flag concerns a column that the others make up for; they are "
        "counted [apart](#counted-apart).\n"
        f"- Noisy: {noisy or 'none'}.\n"
        f"- Times that look computed: {names(profiled)} ({counted(len(evidence.profiled), 'row')}). They are exactly "
        "linear in layers and micro-batches, as no separate runs are. No constant is fitted to them; as the catalog "
        f"predicts them they are off by {percent(_profiled(page).median)} in the median, with a bias of "
        f"{signed(_profiled(page).bias)}.\n"
        "- Rows that don't state their whole layout (tensor and pipeline degree, micro-batch, global batch, "
        f"recomputation), so that a part of it had to be chosen: all of {names(open_layout)}, and single rows of "
        "others.\n"
        "- 8-bit matmuls, widths that fill no tile, longer sequences and Blackwell: [apart](#counted-apart)."
    )


def _sources(page: Page) -> str:
    floors = noise_floors(page.evidence.about)
    said = "; ".join(f"{source} {typical} %, at most {most} %" for source, (typical, most) in floors.items())
    return (
        "## By source\n\n"
        "Every kind of job that the source ran, 8-bit and long sequences included. `rows` have a measured step time; "
        "`counted` are those that the fit counts. `in range` is the share of left-out rows inside a range that was "
        "made without their source too. † No row states the whole layout.\n\n"
        f"{times.source_table(page.evidence)}\n\n"
        f"Repeats of one configuration within a source differ by: {said or 'not stated'}. Errors below that mean "
        "nothing."
    )


def _pictures(page: Page) -> str:
    parts = [
        "## Step times\n\n"
        "Left out, every counted row. The line is a right prediction, dashed are 0.8 and 1.25 times it.\n\n"
        "![Predicted against measured step times, by source](images/accuracy-scatter.svg)\n\n"
        "Below: the dot is the median, the bar holds the middle 80 % of the rows, the line all of them (cut at the "
        "edge of the picture). Left of 1 predictions are too fast. In brackets the number of rows."
    ]
    for group, title in times.TITLES.items():
        picture = f"images/accuracy-{group.replace('_', '-')}.svg"
        parts.append(
            f"### {title.capitalize()}\n\n![Predicted over measured step time {title}]({picture})\n\n"
            f"{times.group_table(page.evidence.left_out, group)}"
        )
    return "\n\n".join(parts)


def _choices(page: Page) -> str:
    left_out = page.evidence.left_out
    computed = choices.choices("", choices.sweeps(page.evidence.profiled))
    return (
        "## Choosing a layout\n\n"
        f"A sweep is one job that a source ran under at least {LEAST_LAYOUTS} layouts. Regret is the measured time of "
        "the layout predicted to be fastest, over that of the fastest measured: 1 where the choice is right. Pairs are "
        f"of layouts measured more than {whole_percent(APART_BY)} apart. All with left-out predictions.\n\n"
        f"{choices.choice_table(left_out)}\n\n"
        f"Row {choices.LONE} is left out above: a single snapshot of a job's second iteration, slower than all its "
        "neighbours; the last line has it.\n\n"
        f"{choices.sweep_table(left_out)}\n\n"
        f"The sources whose times look computed have {counted(computed.sweeps, 'sweep')} more, with a mean regret of "
        f"{regret(computed.mean_regret)}, {regret(computed.p90_regret)} at the 90th percentile, and "
        f"{whole_percent(computed.pairs_in_order)} of {computed.pairs:,} pairs in order."
    )


def _memory(page: Page) -> str:
    every = [*page.evidence.training, *page.evidence.memory]
    by_source, all_runs = memory.calls(every)
    profiles = dict.fromkeys(each.estimate.software.name for each in page.evidence.components if each.estimate)
    return (
        "## Memory\n\n"
        "The peak of the fullest accelerator, by the counter that the source read: torch's allocated leaves out what "
        "the driver and the libraries take and what the allocator keeps unused, its reserved the former only, "
        "nvidia-smi sees everything, rounded to 1 GB or worse. Nothing is left out here: bytes of buffers, copies and "
        "runtimes in the profiles of DeepSpeed, InternEvo, PaddlePaddle and TorchTitan were chosen on these rows.\n\n"
        f"{memory.peak_table(every)}\n\n"
        "Peaks above what the accelerator has are not counted. † Not in the mean: the rows contradict themselves or "
        "don't state their whole layout.\n\n"
        "Parts of memory, as torch allocated them, on the rank that holds most of the part (they don't depend on the "
        f"accelerator, which the source doesn't name; software profile {names(f'`{name}`' for name in profiles)}):\n\n"
        f"{memory.component_table(page.evidence.components)}\n\n"
        "Does it fit? Runs that ran or ran out of memory, by what is said of them:\n\n"
        f"{memory.call_table([*by_source, all_runs])}"
    )


def _apart(page: Page) -> str:
    return (
        "## Counted apart\n\n"
        "What the headline leaves out, with the evidence that there is: left-out errors of the rows that are "
        "counted.\n\n"
        f"{times.apart_table(page.evidence)}\n\n"
        "Where it says no run, nothing published was there to compare with: such predictions rest on the arithmetic "
        "and on what single kernels and collectives reach."
    )


def _constants(page: Page) -> str:
    fit = page.evidence.fit
    return (
        "## Constants\n\n"
        f"Fitted together to {counted(len(fit.runs), 'step')} by robust least squares on the logarithms, each pulled "
        "to what was known before, a source counting by the root of its rows. The standard error is of the "
        "logarithm.\n\n"
        f"{constants.constant_table(fit)}\n\n"
        "Single kernels and collectives have constants of their own, fitted on tables of measurements before any "
        "training run:\n\n"
        f"{constants.parts_table()}"
    )


def _ranges(page: Page) -> str:
    found = page.evidence
    return (
        "## Ranges\n\n"
        "The range of a prediction is as wide as left-out predictions of such jobs were off: it is made to hold "
        f"{whole_percent(INSIDE)} of them. A job takes the widest range of the kinds it is of; for everything about "
        "it that no counted run had (the accelerator, the software, experts, offloading …) the range widens by half. "
        "Measured over predicted step time:\n\n"
        f"{constants.spread_table(fit_accuracy(found.left))}\n\n"
        "How many left-out rows lie in ranges that were made without their source too:\n\n"
        f"{constants.coverage_table(found)}\n\n"
        f"Too few, below {whole_percent(LEAST_INSIDE)}: {_too_few(found)}. [By source](#by-source) has the shares of "
        "the sources."
    )


def _too_few(found: Evidence) -> str:
    """Kinds of jobs and sources of which too few rows lie in their ranges."""
    kinds = [
        f"{name} ({whole_percent(share)})"
        for name, (_, share) in constants.inside_by_kind(found).items()
        if share < LEAST_INSIDE
    ]
    sources = [f"{name} ({whole_percent(share)})" for name, share in found.inside.items() if share < LEAST_INSIDE]
    return names([*kinds, *sources])


def bars(page: Page) -> list[weak.Bar]:
    """What is asked, and what is reached."""
    found, choice = page.headline, _mean_choice(page)
    every = [*page.evidence.training, *page.evidence.memory]
    rows = step_times(page.evidence.training)
    measured = sum(each.measured is not None for each in rows)
    predicted = sum(each.measured is not None and each.predicted is not None for each in rows)
    inside = page.evidence.inside["all"]
    return [
        weak.bar("median error, mean over sources", found.mean.median, 0.07, percent),
        weak.bar("90th percentile, mean over sources", found.mean.p90, 0.18, percent),
        weak.bar(f"largest bias of a source ({found.worst_bias.name})", abs(found.worst_bias.bias or 0), 0.06, percent),
        weak.bar("regret, mean over sweeps", choice.mean_regret, 1.02, regret),
        weak.bar("pairs in order", choice.pairs_in_order, 0.85, whole_percent, least=True),
        weak.bar("median error of the peak of memory, mean over sources", _peak(page).median, 0.05, percent),
        weak.bar(
            "runs that ran called possible", memory.calls(every)[1].ran_called_possible, 0.97, percent, least=True
        ),
        weak.bar("rows predicted", predicted / measured if measured else None, 0.95, percent, least=True),
        weak.Bar(
            "left-out rows in their range",
            f"{whole_percent(LEAST_INSIDE)} to {whole_percent(MOST_INSIDE)}",
            percent(inside),
            LEAST_INSIDE <= inside <= MOST_INSIDE,
        ),
    ]


def _weak(page: Page) -> str:
    found, fit = page.evidence, page.evidence.fit
    asked = bars(page)
    missed = [each.what for each in asked if not each.held]
    said = f"Missed: {'; '.join(missed)}." if missed else "None is missed."
    return (
        "## Weak spots\n\n"
        "What this project asks of its predictions:\n\n"
        f"{weak.bar_table(asked)}\n\n"
        f"{said}\n\n"
        "The kinds of jobs that are furthest off, left out, of sources with at least "
        f"{weak.LEAST_ROWS} such rows:\n\n"
        f"{weak.slice_table(found.left_out)}\n\n"
        "A bias nearly as large as the median error is one cause that all these rows share: hardware, software or a "
        "convention that the constants of other sources don't know. An error without a bias is scatter. Settings that "
        "rows don't state are assumed, and may be the cause.\n\n"
        "Single rows, at most two of a source:\n\n"
        f"{weak.worst_table(found.left_out)}\n\n"
        "### What each term helps\n\n"
        "Each term of the cost model that does not follow from counting operations and bytes is switched off in turn, "
        "all constants are fitted again without it, and every source is predicted without itself. Median errors; – "
        "where the term moves no run of the source. The mean is that of sources with rows that state their whole "
        "layout:\n\n"
        f"{weak.ablation_table(fit, page.base, page.ablations)}\n\n"
        "By mean errors, where they change by at least "
        f"{percent(weak.NOTABLE)} of the step. A term earns its place where it helps sources that it was not thought "
        "up on:\n\n"
        f"{weak.verdict_table(fit, page.base, page.ablations)}"
    )


def _repeat(page: Page) -> str:
    return (
        "## Repeating it\n\n"
        "```sh\n"
        "make calibrate DATA=FOLDER   # fit the constants again and write them into the catalog\n"
        "make accuracy DATA=FOLDER    # write this page again\n"
        "meshwright validate FOLDER/training.csv FOLDER/memory.csv\n"
        "```\n\n"
        "FOLDER holds `training.csv`, `memory.csv`, `collectives.csv`, `gemm.csv` and `attention.csv`; "
        "[Predicted against measured](validate.md) says what their columns mean, and [Calibration](calibrate.md) how "
        "runs of your own make predictions for your machine better."
    )


def _mean_choice(page: Page) -> choices.Choices:
    return choices.source_choices(choices.without_lone(page.evidence.left_out))[1]


def _peak(page: Page) -> Errors:
    return memory.peaks_over_sources([*page.evidence.training, *page.evidence.memory])


def _profiled(page: Page) -> Errors:
    return errors_by(page.evidence.profiled, lambda each: "computed")[0] if page.evidence.profiled else Errors("", 0, 0)


def _without_layout(page: Page) -> Sequence[str]:
    found: dict[str, bool] = {}
    for each in step_times(page.evidence.training):
        if each.estimate is not None:
            found[each.row.source] = found.get(each.row.source, False) or times.full_layout(each)
    return [source for source, full in found.items() if not full]
