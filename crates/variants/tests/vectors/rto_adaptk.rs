//! Worked examples of the adaptive K: a spurious timeout, detected by DSACK. The other numbers are tested in the source
//! file.

use reknit_tcp::Config;
use reknit_testkit::{NOTHING, TestSender, config, variant, vector};
use reknit_units::Duration;

vector!(a_spurious_timeout_makes_the_rto_longer, |isn| {
    let short = Config { min_rto: Duration::from_millis(200), ..config(1) };
    let mut s = TestSender::new(isn, &variant("rto-adaptk"), short, 100);
    assert_eq!(s.sent(), [1]); // at 100 ms, when the handshake is over
    assert_eq!(s.info().rto, Some(Duration::from_millis(300))); // 100 + 4 * 50
    s.at(399);
    assert_eq!(s.sent(), NOTHING);
    s.at(400);
    assert_eq!(s.sent(), [1]);
    s.at(410).pass(1); // the late original
    assert_eq!(s.info().rto, Some(Duration::from_millis(300)));
    s.at(420).pass(1); // its copy
    assert_eq!(s.connection.send_stats().spurious_cuts, 1);
    assert_eq!(s.info().rto, Some(Duration::from_millis(400))); // 100 + 6 * 50
});

vector!(a_real_loss_does_not_change_the_rto, |isn| {
    let short = Config { min_rto: Duration::from_millis(200), ..config(1) };
    let mut s = TestSender::new(isn, &variant("rto-adaptk"), short, 100);
    s.sent();
    s.at(500).pass(1); // the copy
    assert_eq!(s.info().rto, Some(Duration::from_millis(300)));
    s.at(510).pass_all([2, 3]);
    assert_eq!(s.connection.send_stats().spurious_cuts, 0);
    assert_eq!(s.info().rto, Some(Duration::from_micros(328_750))); // 88.75 + 4 * 60
});
