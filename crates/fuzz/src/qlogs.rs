//! Logs of QUIC stacks: any content gives a report or an error of one line.

use reknit_trace::qlog::Qlogs;

/// The most compressed bytes: they may expand a thousandfold.
const MAX_COMPRESSED: usize = 20_000;

pub(crate) fn run(data: &[u8]) {
    let is_compressed = data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5]);
    if is_compressed && data.len() > MAX_COMPRESSED {
        return;
    }
    let mut logs = Qlogs::default();
    // As the logs of both ends.
    for file in ["a", "b"] {
        if let Err(error) = logs.read(data, file) {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
    let report = logs.report();
    serde_json::to_string(&report).expect("a report can be written");
    for direction in &report.directions {
        assert!(direction.late <= direction.declared_lost, "{direction:?}");
    }
}
