"""Random paths: comparison with other variants, ablations, the first seconds, spurious retransmissions."""

import json
import statistics
import tempfile
from pathlib import Path

import captures

from tools import DEVELOPMENT, PATHS, REPORT, Shares, capped, goal, matrix, percent, run, table

COMPARED = ["reknit", "reknit-reno", "linux", "bbr", "bbr1", "pr", "rack", "rr-taes", "dsack-r", "sack"]
# They reduce the window after a loss, and grow like CUBIC or Reno.
FAIR = ["linux", "rack", "rr-taes", "dsack-r", "sack"]
# Own variants and bounds, which are not published algorithms.
OWN = {"reknit", "reknit-reno", "reknit-bbr", "oracle", "oracle-reno", "oracle-bbr", "oracle-bbr1"}

# Each changes one part of the algorithm.
ABLATIONS = {
    "`reknit`": "",
    "never reduces at once because of earlier outcomes": "[loss_detector]\nlearns_outcomes = false",
    "never reduces at once because many retransmissions are undecided": "[loss_detector]\nmax_undecided = 1000",
    "losses after the first of a burst are another congestion event": "[loss_detector]\nbursts_are_one_event = false",
    "slow start goes on while retransmissions are undecided": "[loss_detector]\nholds_slow_start = false",
    "slow start pauses with any window": "[loss_detector]\nhold_above = 0",
    "leaves slow start by HyStart++ in order too": "[congestion_control]\nearly_exit = false\nmin_growth = 0.0",
    "Reno-friendly window of RFC 9438": "[congestion_control]\nalpha_one = true\nfriendly_at_once = true",
    "undoes every reduction that was spurious": '[undo_limit]\nalgorithm = "unlimited"',
    "sends single segments in order too": '[limited_transmit]\nalgorithm = "pipe"\nspreads_bursts = true',
    "segments that the burst limit holds back wait for ACKs": "[limited_transmit]\nspreads_bursts = false",
    "grows by cumulative ACKs": '[congestion_control]\nprogress = "acked"',
    "limited transmit of RFC 3042": '[limited_transmit]\nalgorithm = "rfc3042"',
    "without timestamps": "timestamps = false",
    "retransmissions carry the current timestamp": "[loss_detector]\nrepeats_timestamps = false",
}

# `reknit` needs no timestamps; its peer may.
WITHOUT_TIMESTAMPS = 'name = "without-timestamps"\nbase = "reknit"\ntimestamps = false\n'

LOSSES = ['kind = "loss"', 'kind = "outage"']


def lossless_row(name: str, shares: dict[str, float]) -> list[str]:
    """Capped mean, minimum, and how many paths reach 94 %."""
    values = list(shares.values())
    good = sum(value >= 0.94 for value in values) / len(values)
    return [name, percent(capped(values)), percent(min(values)), percent(good)]


def lossy_row(name: str, shares: dict[str, float]) -> list[str]:
    """Capped mean, mean, minimum and maximum."""
    values = list(shares.values())
    return [
        name,
        percent(capped(values)),
        percent(statistics.mean(values)),
        percent(min(values)),
        percent(max(values)),
    ]


def comparison() -> None:
    """Compare with other variants on the paths of the report."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "without.toml"
        file.write_text(WITHOUT_TIMESTAMPS)
        both = matrix("--seed", REPORT, *PATHS, "--variants", ",".join(COMPARED), "--variant-file", str(file))
    names = {name: f"`{name}`" for name in COMPARED[:1]}
    names |= {"without-timestamps": "`reknit` without timestamps"} | {name: f"`{name}`" for name in COMPARED[1:]}
    shares = both["of_oracle"]
    count = {lossy: len(shares["reknit", lossy]) for lossy in (False, True)}
    print("## Comparison\n\nGoodput as a share of what the oracle with the same growth reaches:\n")
    print(f"{count[False]} paths that lose packets only in queues:\n")
    head = ["variant", "mean, paths capped at 100 %", "minimum", "paths with at least 94 %"]
    table(head, [lossless_row(text, shares[name, False]) for name, text in names.items()])
    print(f"{count[True]} paths that also lose packets at random:\n")
    head = ["variant", "mean, paths capped at 100 %", "mean", "minimum", "maximum"]
    table(head, [lossy_row(text, shares[name, True]) for name, text in names.items()])
    comparison_goals(shares, both["of_in_order"])


def comparison_goals(shares: Shares, of_in_order: Shares) -> None:
    """Note the goals for goodput."""
    ours = shares["reknit", False]
    values = list(ours.values())
    good = sum(value >= 0.94 for value in values) / len(values)
    mean, least, lossy = capped(values), min(values), capped(list(shares["reknit", True].values()))
    goal("lossless paths: mean share of `oracle`", "at least 98 %", percent(mean), holds=mean >= 0.98)
    goal("lossless paths with at least 94 %", "at least 95 %", percent(good), holds=good >= 0.95)
    goal("worst lossless path", "at least 90 %", percent(least), holds=least >= 0.9)
    goal("lossy paths: mean share, capped", "at least 96 %", percent(lossy), holds=lossy >= 0.96)
    less = capped(list(shares["without-timestamps", False].values())) - mean
    points = f"{100 * less:.1f} points"
    goal("the same mean with timestamps, below that without", "at most 3 points", points, holds=less <= 0.03)
    goodputs = {name: of_in_order[name, False] for name in ["reknit", *FAIR]}
    against = min(goodputs["reknit"][path] / max(goodputs[name][path] for name in FAIR) for path in ours)
    goal("against the best fair variant on its best path", "at least 0.9", f"{against:.2f}", holds=against >= 0.9)


def published() -> None:
    """Count the lossless paths on which `reknit` is faster than each published variant."""
    known = json.loads(run("variants", "--json"))
    others = [one["name"] for one in known["variants"] if one["name"] not in OWN]
    compared = ",".join(["reknit", *others])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "without.toml"
        file.write_text(WITHOUT_TIMESTAMPS)
        arguments = ["--lossless", "--variants", compared, "--variant-file", str(file)]
        # The oracles differ by growth, so what is possible does not compare variants.
        shares = matrix("--seed", REPORT, *PATHS, *arguments, seeds=1)["of_in_order"]

    def wins(ours: str, least: float) -> dict[str, float]:
        mine = shares[ours, False]
        theirs = {name: shares[name, False] for name in others if (name, False) in shares}
        return {name: sum(mine[p] > least * of[p] for p in mine) / len(mine) for name, of in theirs.items()}

    faster, about, without = wins("reknit", 1.0), wins("reknit", 0.99), wins("without-timestamps", 1.0)
    hardest = sorted(faster, key=lambda name: faster[name])[:8]
    print(f"## Faster than published variants\n\nOf {len(faster)} variants, those that come closest:\n")
    head = ["variant", "paths on which `reknit` is faster", "at most 1 % slower", "faster, without timestamps"]
    table(head, [[f"`{n}`", *(percent(one[n]) for one in (faster, about, without))] for n in hardest])
    least = faster[hardest[0]]
    goal("lossless paths on which it is faster, by variant", "at least 90 %", percent(least), holds=least >= 0.9)


def ablations() -> None:
    """Change one part at a time."""
    print("## Ablations\n\nEach row changes one part of the algorithm, on the paths of seeds 1 to 12:\n")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, change in enumerate(ABLATIONS.values()):
            file = Path(folder) / f"v{number}.toml"
            file.write_text(f'name = "v{number}"\nbase = "reknit"\n{change}\n')
            files += ["--variant-file", str(file)]
        shares = matrix("--seed", DEVELOPMENT, *PATHS, "--variants", "oracle", *files)["of_oracle"]
        for number, name in enumerate(ABLATIONS):
            lossless, lossy = (shares[f"v{number}", kind] for kind in (False, True))
            rows.append([*lossless_row(name, lossless)[:3], *lossy_row(name, lossy)[1:3]])
    table(["", "lossless mean, capped", "lossless minimum", "lossy mean, capped", "lossy mean"], rows)


def received(path: Path, since: float, until: float) -> float:
    """Return what `reknit` delivers between two times as a share of what `oracle` does, in order or not."""
    file = path.with_suffix(".pcapng")
    arguments = ["--variants", "reknit,oracle", "--seeds", "1", "--duration", f"{until} s"]
    run("compare", "--path", str(path), *arguments, "--no-oracle", "--pcap", str(file), "--pcap-side", "receiver")
    of = {}
    for variant in ("reknit", "oracle"):
        capture = file.with_name(f"{path.stem}-{variant}.pcapng")
        of[variant] = captures.received(capture, until) - captures.received(capture, since)
        capture.unlink()
    return of["reknit"] / max(1, of["oracle"])


def is_lossy(file: Path) -> bool:
    """Tell whether the path loses packets other than in queues."""
    text = file.read_text()
    return any(kind in text for kind in LOSSES)


def phases() -> None:
    """Measure the first seconds on lossless paths, and lossy paths after a warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        run("matrix", "--seed", REPORT, *PATHS, "--write", folder)
        files = sorted(Path(folder).glob("*.toml"))
        lossless = [file for file in files if not is_lossy(file)]
        first = [received(file, 0.0, 5.0) for file in lossless]
        later = [received(file, 10.0, 30.0) for file in files if is_lossy(file)]
        spurious(lossless)
    mean, least = capped(first), min(first)
    print("## The first seconds, and after them\n\nBytes received, as a share of what `oracle` receives:\n")
    print(f"- Lossless paths, first 5 s: mean {percent(mean)} (paths capped at 100 %), minimum {percent(least)}.")
    over, average = sum(share > 1.3 for share in later), statistics.mean(later)
    print(f"- Lossy paths, 10 s to 30 s: mean {percent(average)}; {over} of {len(later)} paths above 130 %.\n")
    goal("first 5 s of lossless paths: mean", "at least 93 %", percent(mean), holds=mean >= 0.93)
    goal("first 5 s of the worst lossless path", "at least 75 %", percent(least), holds=least >= 0.75)
    goal("lossy paths after 10 s: mean", "96 to 103 %", percent(average), holds=0.96 <= average <= 1.03)
    goal("lossy paths above 130 % after 10 s", "none", str(over), holds=over == 0)


def spurious_share(path: Path, warm_up: str) -> float:
    """Spurious retransmissions as a share of segments sent."""
    text = f'path = "{path}"\nduration = "30 s"\nwarm_up = "{warm_up}"\n[[flows]]\nworkload = "bulk"\n'
    scenario = path.with_suffix(".scenario")
    scenario.write_text(text)
    one = json.loads(run("simulate", "--scenario", str(scenario), "--variant", "reknit", "--json"))["run"]
    return float(one["spurious_retransmissions"]) / max(1, one["segments_sent"])


def spurious(paths: list[Path]) -> None:
    """Measure spurious retransmissions on lossless paths."""
    whole = statistics.mean(spurious_share(path, "0 s") for path in paths)
    later = statistics.mean(spurious_share(path, "5 s") for path in paths)
    goal("spurious retransmissions on lossless paths", "below 2 %", f"{100 * whole:.2f} %", holds=whole < 0.02)
    goal("the same after 5 s", "below 0.5 %", f"{100 * later:.2f} %", holds=later < 0.005)
