"""The report in a browser, and its outcomes when an algorithm is broken."""

from dataclasses import replace
from pathlib import Path

import pytest

from reknit_study.papers import _claims, _lab, _overview, _report, papers
from reknit_study.papers._frame import Result, Tier
from reknit_study.papers._lab import Lab
from reknit_study.papers._statistics import bootstrap, jackknife
from reknit_study.papers._vocabulary import Evidence
from reknit_study.papers.rr_tcp import avoidance

from conftest import OpenPage

SMALL = Tier("quick", duration=0.015, seeds=2, points=2)


def run_fig4() -> dict[str, Result]:
    """Run RR-TCP's Fig. 4 for 15 s a point."""
    with Lab(papers().values(), SMALL) as lab:
        return lab.run(["R4"])


@pytest.fixture(scope="module")
def fig4() -> dict[str, Result]:
    """Run Fig. 4 once."""
    return run_fig4()


@pytest.fixture(scope="module")
def report(fig4: dict[str, Result], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a complete report, with an overview of two variants on two paths."""
    out = tmp_path_factory.mktemp("papers") / "report.html"
    with pytest.MonkeyPatch.context() as patch, Lab(papers().values(), SMALL) as lab:
        patch.setattr(_overview, "PATHS", {"rr-tcp": ("late packets", "5 s"), "survey": ("route flutter", "5 s")})
        patch.setattr(_overview, "VARIANTS", ("sack", "pr"))
        _report.write(out, lab, fig4, _claims.judge(_claims.claims(), fig4), _overview.overview(lab))
    return out


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_in_a_browser(open_page: OpenPage, report: Path, width: int, scheme: str) -> None:
    """Nothing is fetched, there are no errors, figures and tables have content, and the page fits the screen."""
    opened = open_page(report, width, scheme)
    page = opened.page
    assert opened.complaints == []
    assert [url for url in opened.fetched if not url.startswith("data:")] == [report.as_uri()]
    page.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("document.images.length") == 1
    assert page.evaluate("[...document.images].every(image => image.alt)")
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every(table => table.querySelector('td')?.textContent.trim())"
    )
    assert page.locator("#claims tbody tr").count() == 255
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.select_option("select[name=outcome]", "reproduced")
    assert 0 < page.locator("#claims tbody tr:visible").count() < 255
    page.select_option("select[name=outcome]", "")
    page.check("input[name=weak]")
    weak = sum(claim.gate_weaker for claim in _claims.claims())
    assert page.locator("#claims tbody tr:visible").count() == weak
    page.uncheck("input[name=weak]")
    page.fill("input[name=text]", "rr-fig4-1")
    assert page.locator("#claims tbody tr:visible").count() == 1
    page.close()


def test_report_works_without_scripts(browser: object, report: Path) -> None:
    """The script only filters the claims."""
    context = browser.new_context(java_script_enabled=False)  # type: ignore[attr-defined]
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#claims tbody tr:visible").count() == 255
    assert not page.locator("#filter").is_visible()
    context.close()


def test_a_report_is_small(report: Path) -> None:
    """Figures are compressed, so that the page loads fast."""
    assert report.stat().st_size < 1_000_000


def test_interpretations_that_change_nothing_take_no_space(fig4: dict[str, Result], tmp_path: Path) -> None:
    """They are named, without figures and values; one that changes an outcome is shown."""
    lab = Lab(papers().values(), SMALL, dry=True)
    lab.result("R4")
    results = {**fig4, "R4@uncapped": fig4["R4"]}

    def written(judged: list[_claims.Verdict]) -> str:
        _report.write(tmp_path / "report.html", lab, results, judged, None)
        return (tmp_path / "report.html").read_text("utf-8")

    verdicts = _claims.judge(_claims.claims(), results)
    alike = written(verdicts)
    assert 'id="R4@uncapped"' not in alike
    assert "Other interpretations change no outcome: uncapped" in alike
    differing = [replace(v, readings={"uncapped": "met"}) if v.claim.id == "rr-fig4-1" else v for v in verdicts]
    assert 'id="R4@uncapped"' in written(differing)


def outcomes(results: dict[str, Result]) -> dict[str, str]:
    """Evaluate the conditions of the claims about Fig. 4; two short runs decide nothing more."""
    evidence = Evidence(results)
    about = [claim for claim in _claims.claims() if claim.experiments == ("R4",)]
    return {c.id: "reproduced" if _claims._is_met(c.gate, evidence)[0] else "not reproduced" for c in about}


def test_a_broken_algorithm_is_detected(fig4: dict[str, Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without DSACK, spurious retransmissions go undetected: only claims about SACK are still reproduced."""
    as_published, late = outcomes(fig4), avoidance._late
    monkeypatch.setattr(avoidance, "_late", lambda share: {**late(share), "tcp.dsack": False})
    broken = outcomes(run_fig4())
    about_dsack, about_sack = {"rr-fig4-1", "rr-fig4-2", "rr-fig4-6"}, {"rr-fig4-3"}
    for id in about_dsack | about_sack:
        assert as_published[id] == "reproduced", id
    for id in about_dsack:
        assert broken[id] == "not reproduced", id
    for id in about_sack:
        assert broken[id] == "reproduced", id


def test_results_are_the_same_every_time(fig4: dict[str, Result]) -> None:
    """The table and the figure are identical."""
    again = run_fig4()["R4"]
    assert again.table.equals(fig4["R4"].table)
    assert [figure.svg(again) for figure in again.figures] == [figure.svg(fig4["R4"]) for figure in again.figures]


def test_counts_are_scaled_to_the_papers_duration(fig4: dict[str, Result]) -> None:
    """With 15 s of 1000 s, delivered packets count 1000/15 times."""
    found = fig4["R4"]
    assert found.table["thr_pkts"].to_list() == pytest.approx([n * 1000 / 15 for n in found.runs["delivered_packets"]])
    assert _lab.MIN_DURATION_S < 15


def test_a_report_on_some_experiments_has_only_their_claims(fig4: dict[str, Result], tmp_path: Path) -> None:
    """There is no overview, and no other claims."""
    lab = Lab(papers().values(), SMALL, dry=True)
    _report.write(tmp_path / "report.html", lab, fig4, _claims.judge(_claims.claims(), fig4), None)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert 'id="overview"' not in text
    assert text.count("<tr data-outcome=") == sum("R4" in claim.experiments for claim in _claims.claims())


def test_intervals() -> None:
    """The jackknife of a mean is the textbook's interval; the bootstrap is repeatable; one seed has no interval."""
    numbers = {1: 4.0, 2: 6.0, 3: 8.0}

    def mean(weights: object) -> list[float]:
        counts = {seed: 1 if weights is None else weights.get(seed, 1) for seed in numbers}  # type: ignore[attr-defined]
        return [sum(counts[s] * v for s, v in numbers.items()) / sum(counts.values())]

    (interval,) = jackknife(mean, list(numbers))
    # t(0.975, 2) = 4.3027, standard deviation 2, three seeds.
    assert (interval.value, interval.low, interval.high) == pytest.approx((6, 6 - 4.96828, 6 + 4.96828), rel=1e-5)
    assert bootstrap(mean, list(numbers)) == bootstrap(mean, list(numbers))
    (drawn,) = bootstrap(mean, list(numbers))
    assert 4 <= drawn.low < 6 < drawn.high <= 8
    assert jackknife(mean, [1])[0].low is None
