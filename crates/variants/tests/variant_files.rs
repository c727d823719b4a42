//! Variants from files: what they mean, and the errors of invalid ones.

use std::sync::Arc;

use reknit_tcp::experiment::Features;
use reknit_tcp::seams::{AckAction, AckPolicy, DupThresh, HeaderSupport, HeaderSupportTraits, Plugin, RxFacts, Seam};
use reknit_tcp::{Config, Connection, Identity, Info, SeqNum};
use reknit_units::{Instant, Segments};
use reknit_variants::algorithm::Unlisted;
use reknit_variants::algorithms::{self, LimitedTransmit};
use reknit_variants::base::limited_transmit;
use reknit_variants::requirement::{Need, Requirement};
use reknit_variants::requirements;
use reknit_variants::{Composition, Custom, VARIANTS, composition, file};

fn read(text: &str) -> Custom {
    Custom::parse("my.toml", text).unwrap()
}

fn error(text: &str) -> String {
    let error = Custom::parse("my.toml", &format!("name = \"mine\"\n{text}")).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error:?}");
    error
}

fn assert_same(a: &Composition, b: &Composition, what: &str) {
    for seam in Seam::ALL {
        assert_eq!(a.parts(seam), b.parts(seam), "{what}: {seam}");
    }
    assert_eq!(a.sack, b.sack, "{what}");
    let built = |composition: &Composition| {
        let plugins = composition.build();
        format!("{:?} {:?}", plugins.sender, plugins.receiver)
    };
    assert_eq!(built(a), built(b), "{what}");
}

#[test]
fn every_variant_can_be_read_back_from_its_own_file() {
    for variant in VARIANTS.iter() {
        let composition = (variant.compose)();
        let name = format!("my-{}", variant.name);
        let text = file::write(&name, variant, &composition);
        let custom = read(&text);
        assert_same(&custom.composition, &composition, variant.name);
        assert_eq!((custom.name.as_str(), custom.base.name), (name.as_str(), variant.name));
        // The file is complete: the parts do not depend on the base.
        let elsewhere = text.replace(&format!("base = \"{}\"", variant.name), "base = \"rack\"");
        assert_same(&read(&elsewhere).composition, &composition, variant.name);
    }
}

#[test]
fn no_variant_violates_a_rule() {
    for variant in VARIANTS.iter() {
        assert_eq!(requirements::check(&(variant.compose)()).errors, [""; 0], "{}", variant.name);
    }
}

#[test]
fn names_of_algorithms_are_unique_within_their_seam() {
    for seam in Seam::ALL {
        let mut names: Vec<&str> = Vec::new();
        for algorithm in composition::algorithms(seam) {
            assert!(!names.contains(&algorithm.name.as_str()), "{seam}: two algorithms are called {}", algorithm.name);
            names.push(&algorithm.name);
        }
    }
}

#[test]
fn every_parameter_has_a_description_and_a_default() {
    for seam in Seam::ALL {
        for algorithm in composition::algorithms(seam) {
            assert!(!algorithm.about.is_empty(), "{seam}: {} has no description", algorithm.name);
            for parameter in &algorithm.parameters {
                let place = format!("{seam}.{}.{}", algorithm.name, parameter.name);
                assert!(!parameter.meaning.is_empty(), "{place} has no description");
                assert!(parameter.default.is_some(), "{place} has no default");
            }
        }
    }
}

#[test]
fn only_the_settings_in_the_file_differ_from_the_base() {
    let custom = read("name = \"mine\"\nbase = \"rack\"\n[loss_detector]\ntlp = false\n");
    let rack = (reknit_variants::find("rack").unwrap().compose)();
    for seam in Seam::ALL {
        assert_eq!(custom.composition.parts(seam) == rack.parts(seam), seam != Seam::LossDetector, "{seam}");
    }
    let parameters = &custom.composition.parts(Seam::LossDetector)[0].parameters;
    assert_eq!(parameters["tlp"].as_bool(), Some(false));
    assert_eq!(parameters["reo_wnd_divisor"].as_integer(), Some(4));
    assert!(custom.warnings.is_empty(), "{:?}", custom.warnings);
}

#[test]
fn a_list_replaces_that_of_the_base() {
    let none = read("name = \"mine\"\nbase = \"rack\"\nspurious_detectors = []\n");
    assert!(none.composition.spurious_detectors.is_empty());
    let text = "name = \"mine\"\n[[spurious_detectors]]\nalgorithm = \"dsack\"\nduplication = \"ignore\"\n\
                [spurious_response]\nalgorithm = \"slow-start\"\n";
    let one = read(text).composition;
    assert_eq!(one.parts(Seam::SpuriousDetector)[0].parameters["duplication"].as_str(), Some("ignore"));
    assert_eq!(one.parts(Seam::SpuriousResponse)[0].algorithm, "slow-start");
}

#[test]
fn each_algorithm_has_its_own_parameters() {
    let with = |text: &str| {
        let custom = read(&format!("name = \"mine\"\n[limited_transmit]\n{text}"));
        format!("{:?}", custom.composition.limited_transmit)
    };
    assert_eq!(with("algorithm = \"per-sack\"\nwindows = 2.0\n"), "PerSack(PerSackConfig { windows: 2.0 })");
    assert_eq!(with("algorithm = \"per-sack\"\nwindows = 2\n"), "PerSack(PerSackConfig { windows: 2.0 })");
    assert_eq!(with("algorithm = \"per-sack\"\n"), "PerSack(PerSackConfig { windows: 1.0 })");
    assert_eq!(with("algorithm = \"off\"\n"), "Off");
}

#[test]
fn errors_name_the_key_and_what_is_allowed() {
    let cases = [
        ("colour = 1", "my.toml: colour: unknown key; allowed are name, base, summary, timestamps, sack, "),
        ("base = \"tahoe\"", "my.toml: base: unknown variant `tahoe`; `reknit variants` lists all"),
        ("base = 3", "my.toml: base: must be a string, not 3"),
        ("sack = 1", "my.toml: sack: must be true or false, not 1"),
        ("dup_thresh = 4", "my.toml: dup_thresh: must be a table [dup_thresh], not 4"),
        (
            "[dup_thresh]\nalgorithm = \"guess\"",
            "my.toml: dup_thresh.algorithm: unknown algorithm `guess`; allowed are fixed",
        ),
        ("[dup_thresh]\nalgorithm = 3", "my.toml: dup_thresh.algorithm: must be a name, not 3"),
        (
            "[dup_thresh]\nthreshold = 4",
            "my.toml: dup_thresh.threshold: `fixed` has no such parameter; allowed are dup_thresh",
        ),
        ("[dup_thresh]\ndup_thresh = \"many\"", "my.toml: dup_thresh.dup_thresh: must be a whole number, not \"many\""),
        (
            "[limited_transmit]\nalgorithm = \"off\"\nwindows = 1.0",
            "my.toml: limited_transmit.windows: unknown key; `off` has no parameters",
        ),
        (
            "[limited_transmit]\nalgorithm = \"per-sack\"\nwindows = \"all\"",
            "my.toml: limited_transmit.windows: must be a number, not \"all\"",
        ),
        (
            "[rto_estimator]\ngranularity = 3",
            "my.toml: rto_estimator.granularity: `3` is not a duration; write a number and a unit (ns, us, ms, s, min), \
             for example `25 ms`",
        ),
        (
            "[[ack_policy]]\nalgorithm = \"delayed\"\n[[ack_policy]]\nalgorithm = \"delayed\"",
            "my.toml: ack_policy: exactly one algorithm fills this seam; write one table [ack_policy]",
        ),
        (
            "[spurious_detectors]\nalgorithm = \"dsack\"",
            "my.toml: spurious_detectors: write each algorithm as a table [[spurious_detectors]]",
        ),
        (
            "[[spurious_detectors]]\nduplication = \"ignore\"",
            "my.toml: spurious_detectors[0].algorithm: missing; allowed are ",
        ),
        (
            "[[spurious_detectors]]\nalgorithm = \"dsack\"\n[[spurious_detectors]]\nalgorithm = \"dsack\"",
            "my.toml: spurious_detectors: `dsack` is listed twice; it may be listed only once",
        ),
        ("sack = false", "my.toml: loss_detector: `sacked-above` needs SACK, which this variant does not use; "),
        ("rate = = 3", "my.toml:2: "),
    ];
    for (text, expected) in cases {
        let error = error(text);
        assert!(error.starts_with(expected), "{error}\n{expected}");
    }
}

#[test]
fn a_name_is_required_and_must_be_unused() {
    let error = |text: &str| Custom::parse("my.toml", text).unwrap_err().to_string();
    assert!(error("").starts_with("my.toml: name: missing; a name consists of lower-case letters"));
    assert!(error("name = \"My Own\"").starts_with("my.toml: name: invalid variant name `My Own`; allowed are "));
    assert_eq!(
        error("name = \"rack-tlp\""),
        "my.toml: name: `rack-tlp` is the built-in variant `rack`; choose another name"
    );
}

#[test]
fn a_response_without_a_detector_causes_a_warning() {
    let custom = read("name = \"mine\"\n[spurious_response]\nalgorithm = \"instant\"\n");
    assert_eq!(
        custom.warnings,
        [
            "my.toml: spurious_response: `instant` has no effect: there are no spurious_detectors, and timeout_recovery is \
          `conventional`"
        ]
    );
}

#[derive(Clone, Debug)]
struct Three;

impl Plugin for Three {}

impl DupThresh for Three {
    fn dup_thresh(&self, _cx: &reknit_tcp::facts::Context<'_>) -> Segments {
        Segments(3)
    }
}

#[derive(Clone, Debug)]
struct AtOnce;

impl Plugin for AtOnce {}

impl AckPolicy for AtOnce {
    fn on_data(&mut self, _rx: &RxFacts<'_>) -> AckAction {
        AckAction::Now
    }

    fn on_ack_sent(&mut self) {}
}

/// A threshold with every rule that a threshold can have.
fn particular(limited_transmit: LimitedTransmit) -> Composition {
    const RULES: &[Requirement] = &[
        Requirement::Only(Seam::LimitedTransmit, &["off", "per-sack"]),
        Requirement::MayExceedWindow,
        Requirement::Waits,
        Requirement::Needs(Need::Sack, "it stays at 3"),
        Requirement::Needs(Need::Timestamps, "it guesses"),
    ];
    let threshold = Unlisted::<dyn DupThresh>::new("particular", || Box::new(Three)).with_requirements(RULES);
    Composition { dup_thresh: algorithms::DupThresh::Unlisted(threshold), limited_transmit, ..Composition::default() }
}

/// A receiver that withholds acknowledgments.
fn miser() -> algorithms::AckPolicy {
    let policy = Unlisted::<dyn AckPolicy>::new("miser", || Box::new(AtOnce));
    algorithms::AckPolicy::Unlisted(policy.with_requirements(&[Requirement::Withholds]))
}

#[test]
fn an_algorithm_that_decides_for_another_seam_excludes_others_there() {
    let findings = requirements::check(&particular(LimitedTransmit::Rfc3042 {}));
    assert_eq!(
        findings.errors,
        [
            "limited_transmit: `rfc3042` cannot be combined with `particular` (dup_thresh), which itself decides new data \
          during disorder; allowed: off, per-sack"
        ]
    );
    assert!(
        requirements::check(&particular(limited_transmit::PerSackConfig { windows: 1.0 }.into())).errors.is_empty()
    );
}

#[test]
fn an_estimator_without_a_timer_needs_a_detector_with_one() {
    let by = |text| error(text).replace("my.toml: loss_detector: ", "");
    let estimator = "cannot be combined with `rtt-envelope` (rto_estimator), which itself decides which segments are lost; \
                     allowed: segment-clocks";
    assert_eq!(by("[rto_estimator]\nalgorithm = \"rtt-envelope\""), format!("`sacked-above` {estimator}"));
    assert_eq!(
        by("base = \"pr\"\n[loss_detector]\nalgorithm = \"partial-acks\"\n[fast_recovery]\nalgorithm = \"deflate\""),
        format!("`partial-acks` {estimator}")
    );
    let recovery = by("[fast_recovery]\nalgorithm = \"outstanding\"");
    assert!(recovery.starts_with("`sacked-above` cannot be combined with `outstanding` (fast_recovery)"), "{recovery}");
}

#[test]
fn a_detector_that_does_not_need_sack_keeps_its_timer_without_it() {
    let text = |recovery: &str| {
        format!(
            "name = \"mine\"\n[loss_detector]\nalgorithm = \"segment-clocks\"\n[rto_estimator]\n\
             algorithm = \"rtt-envelope\"\n[limited_transmit]\nalgorithm = \"outstanding\"\n[fast_recovery]\n\
             algorithm = \"{recovery}\"\n"
        )
    };
    for recovery in ["pipe", "outstanding", "inflate"] {
        let composition = read(&text(recovery)).composition;
        let without = reknit_tcp::Config { sack: false, dsack: false, ..reknit_testkit::config(2) };
        let mut s = reknit_testkit::TestSender::new(1000, &composition, without, 100);
        assert_eq!(s.at(100).sent(), [1, 2], "{recovery}");
        s.at(10_000);
        assert!(s.sent().contains(&1), "{recovery}");
    }
    // A detector that needs SACK is replaced whatever the base.
    let pr = "name = \"mine\"\nbase = \"pr\"\n[loss_detector]\nalgorithm = \"sacked-above\"\n[rto_estimator]\n\
              algorithm = \"rfc6298\"\n[fast_recovery]\nalgorithm = \"pipe\"\n";
    assert!(read(pr).composition.without_sack.is_some());
}

#[test]
fn without_sack_an_estimator_without_timer_is_replaced_with_the_detector_that_has_one() {
    for base in ["sack", "ncr", "reknit"] {
        let text = format!(
            "name = \"mine\"\nbase = \"{base}\"\n[loss_detector]\nalgorithm = \"learned-lateness\"\n\
             [rto_estimator]\nalgorithm = \"no-timer\"\n"
        );
        let without = reknit_tcp::Config { sack: false, dsack: false, ..reknit_testkit::config(2) };
        let mut s = reknit_testkit::TestSender::new(1000, &read(&text).composition, without, 100);
        assert_eq!(s.at(100).sent(), [1, 2], "{base}");
        assert!(s.at(10_000).sent().contains(&1), "{base}");
    }
}

#[test]
fn a_threshold_above_the_window_without_limited_transmit_causes_a_warning() {
    let findings = requirements::check(&particular(LimitedTransmit::Off {}));
    assert_eq!(findings.errors, [""; 0]);
    assert_eq!(
        findings.warnings,
        [
            "limited_transmit: with `off`, `particular` (dup_thresh) may set a threshold above the window; then only the \
          timer repairs losses"
        ]
    );
}

#[test]
fn a_sender_and_a_receiver_that_both_wait_cause_a_warning() {
    let sender = particular(limited_transmit::PerSackConfig { windows: 1.0 }.into());
    let receiver = Composition { ack_policy: miser(), ..Composition::default() };
    let warning = "dup_thresh: `particular` waits before it retransmits, and `miser` at the receiver (ack_policy) withholds the \
                   ACKs that it waits for: the times add up";
    assert_eq!(requirements::between(&sender, &receiver).as_deref(), Some(warning));
    assert_eq!(requirements::between(&receiver, &sender), None);
    let both = Composition { ack_policy: miser(), ..sender };
    assert_eq!(requirements::check(&both).warnings, [warning]);
}

/// Support for a header field without a rule.
#[derive(Clone, Debug)]
struct Field;

impl Plugin for Field {}

impl HeaderSupport for Field {
    fn traits(&self) -> HeaderSupportTraits {
        HeaderSupportTraits::new(Features::ORDINALS)
    }
}

#[test]
fn a_feature_without_an_agreement_is_reported() {
    let field = algorithms::HeaderSupport::unlisted("field", || Box::new(Field));
    let composition = Composition { header_support: vec![field], ..Composition::default() };
    let info = Info { sack: true, ..alone() };
    let line = "without `ordinals` in the experimental option, everything that depends on it is off";
    assert_eq!(requirements::fallbacks(&composition, &info), [line]);
    assert_eq!(requirements::fallbacks(&composition, &Info { features: Features::ORDINALS, ..info }), [""; 0]);
    assert_eq!(requirements::possible_fallbacks(&composition).last().unwrap(), line);
}

/// The state of a connection whose peer has agreed to nothing.
fn alone() -> Info {
    let plugins = Composition::default().build();
    let identity = Identity { isn: SeqNum(1), timestamp_offset: 0 };
    Connection::connect(Instant::ZERO, Arc::new(Config::default()), plugins, identity).info(Instant::ZERO)
}

#[test]
fn each_unmet_need_is_reported_with_what_happens_instead() {
    let composition = particular(LimitedTransmit::Off {});
    let lines = requirements::fallbacks(&composition, &Info { sack: false, timestamps: false, ..alone() });
    assert_eq!(
        lines,
        [
            "without SACK, losses are detected and repaired as in `newreno`, and it stays at 3",
            "without timestamps, it guesses"
        ]
    );
    assert_eq!(requirements::fallbacks(&composition, &Info { sack: true, timestamps: true, ..alone() }), [""; 0]);
}
