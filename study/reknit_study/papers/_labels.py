"""The labels of the papers' curves, and the variant of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Variant = str | dict[str, Any]
"""The name of a built-in variant, or a mapping with the keys of docs/reference/variants.md."""

ALIASES = {
    "dsack_fa_mean": "dsack_fa",
    "dsack_ta_mean": "dsack_ta",
    "faes": "dsack_faes",
    "ta": "dsack_ta",
    "taes": "dsack_taes",
    "hg": "dsack_hg",
    "rr": "dsack_taes",
}
"""Second labels of the same curves."""

_EIFEL_2000 = {"spurious_response": {"algorithm": "instant"}, "rto_estimator": {"algorithm": "rfc6298"}}
"""The Eifel sender of the F-RTO paper: the window is restored at once; RFC 4015 came later."""

OFFICIAL: dict[str, Variant] = {
    "reno": "reno",
    "newreno": "newreno",
    "sack": "sack",
    "sack_nodelay": "sack",
    "yang_unmod": {"name": "yang-unmod", "base": "reno", "limited_transmit": {"algorithm": "off"}},
    "yang_mod": {
        "name": "yang-mod",
        "base": "reno",
        "limited_transmit": {"algorithm": "off"},
        "ack_policy": {
            "algorithm": "yang",
            "imm": 2,
            "thr0": 0,
            "ring": 100,
            "gain": 8,
            "min_hold": "20 ms",
            "max_hold": "60 s",
        },
    },
    "dsack_r": "dsack-r",
    "dsack_fa": "rr-fa",
    "dsack_fa_rtx": "rr-fa-rtx",
    "dsack_faes": "rr-faes",
    "dsack_ta": "rr-ta",
    "dsack_ta_rtx": "rr-ta-rtx",
    "dsack_taes": "rr-taes",
    "dsack_taes_rtx": "rr-taes-rtx",
    "dsack_hg": "rr-hg",
    "ba_r": "ba-r",
    "ba_inc": "ba-inc",
    "ba_avg": "ba-avg",
    "ba_ewma": "ba-ewma",
    "ba_timedel": "ba-timedel",
    "ba_timeinc": "ba-timeinc",
    "eifel": "eifel",
    "dsack_tcp": "dsack-ss",
    "door": "door",
    "leungma": "leung-ma",
    "rntcp": "rn",
    "dcr": "dcr",
    "tcppr": "pr",
    "rto_sack": "sack",
    "rto_newreno": "newreno",
    "frto_sack": "frto-2002",
    "frto_newreno": {
        "name": "frto-2002-newreno",
        "base": "newreno",
        "timeout_recovery": {"algorithm": "frto", "version": "2002"},
        "spurious_response": {"algorithm": "halve"},
    },
    "eifel_sack": {"name": "eifel-2000", "base": "eifel", **_EIFEL_2000},
    "eifel_newreno": {
        "name": "eifel-2000-newreno",
        "base": "newreno",
        "timestamps": True,
        "spurious_detectors": [{"algorithm": "eifel"}],
        **_EIFEL_2000,
    },
    "eifel_rtxbit_sack": {"name": "eifel-2000-rtx", "base": "eifel-rtx", **_EIFEL_2000},
    "reno_t2": "reno-nt4",
    "sack_t2": {"name": "sack-t2", "base": "sack", "dup_thresh": {"algorithm": "fixed", "dup_thresh": 2}},
    "sack_t4": {"name": "sack-t4", "base": "sack", "dup_thresh": {"algorithm": "fixed", "dup_thresh": 4}},
    "sack_t40": {"name": "sack-t40", "base": "sack", "dup_thresh": {"algorithm": "fixed", "dup_thresh": 40}},
    "sack_t2_wait20": "paxson-snd",
}
"""Labels of curves, and their variants."""

SETS = {
    "partner_rr": "flow A beside RR-TCP",
    "partner_sack": "flow A beside SACK",
    "testA_set1": "the first three flows, conventional, competing with F-RTO",
    "testA_set2": "the last three flows, F-RTO",
    "testB_set1": "the first three flows, conventional, competing with conventional flows",
    "testB_set2": "the last three flows, conventional",
    "long": "long transfers of the mix",
    "short": "short transfers of the mix",
    "http": "HTTP requests of the mix",
}
"""Labels of curves that show some flows of a run instead of a variant."""


def canonical(label: str) -> str:
    """Return the first label of a curve."""
    return ALIASES.get(label, label)


def known(label: str) -> bool:
    """Return whether a label is defined."""
    return canonical(label) in OFFICIAL or label in SETS


def variant(label: str) -> Variant:
    """Look up the variant of a label.

    Raises
    ------
    KeyError
        If there is none, which is a mistake in an experiment.
    """
    try:
        return OFFICIAL[canonical(label)]
    except KeyError:
        raise KeyError(f"{label}: no such curve; allowed are {', '.join(OFFICIAL)}") from None


def base(label: str) -> str | None:
    """Return the built-in variant of a curve, or on which its variant is based; None if the curve shows some flows."""
    found = OFFICIAL.get(canonical(label))
    return found["base"] if isinstance(found, dict) else found


def changed(label: str, name: str, **changes: Mapping[str, Any] | bool | str | list[Any]) -> dict[str, Any]:
    """Describe a variant that differs from that of a curve in some keys, for example in a parameter that is swept.

    >>> changed("dsack_fa", "rr-fa-60", dup_thresh={"fa": 0.6})
    """
    base = variant(label)
    start = {"base": base} if isinstance(base, str) else dict(base)
    return {**start, "name": name, **changes}
