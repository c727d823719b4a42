//! Worked examples of the template, `src/template.rs`.

use reknit_testkit::{TestSender, config, vector};
use reknit_variants::template;

vector!(the_fifth_duplicate_retransmits, |isn| {
    // The template is not registered; for a registered algorithm use `variant("NAME")` of the testkit.
    let composition = (template::VARIANT.compose)();
    let mut s = TestSender::new(isn, &composition, config(10), 100);
    assert_eq!(s.sent().len(), 10);
    assert!(!s.pass_all(2..=5).contains(&1));
    assert_eq!(s.pass(6), [1]);
});
