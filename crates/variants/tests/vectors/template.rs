//! Worked examples of the template, `src/template.rs`.

use reknit_testkit::{TestSender, config, vector};
use reknit_variants::Composition;
use reknit_variants::algorithm::Algorithm;
use reknit_variants::algorithms::DupThresh;
use reknit_variants::template::PatientConfig;

vector!(the_fifth_duplicate_retransmits, |isn| {
    // The template is in no list; for a registered variant use `variant("NAME")` of the testkit.
    let dup_thresh = DupThresh::unlisted("patient", || PatientConfig::default().build());
    let composition = Composition { dup_thresh, ..Composition::default() };
    let mut s = TestSender::new(isn, &composition, config(10), 100);
    assert_eq!(s.sent().len(), 10);
    assert!(!s.pass_all(2..=5).contains(&1));
    assert_eq!(s.pass(6), [1]);
});
