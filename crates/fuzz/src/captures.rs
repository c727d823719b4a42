//! Capture files: any content gives a result, and the path file that is written can be read.

use reknit_path::Profile;
use reknit_trace::{Analyzer, BothEndsOptions, CapturePoint, Matched, MeasuredPath, Options};

/// The most compressed bytes: they may expand a thousandfold.
const MAX_COMPRESSED: usize = 20_000;

pub(crate) fn run(data: &[u8]) {
    let Some((how, file)) = data.split_first() else { return };
    let is_compressed = file.starts_with(&[0x1f, 0x8b]) || file.starts_with(&[0x28, 0xb5]);
    if is_compressed && file.len() > MAX_COMPRESSED {
        return;
    }
    let at = [None, Some(CapturePoint::Sender), Some(CapturePoint::Middle), Some(CapturePoint::Receiver)]
        [usize::from(how % 4)];
    let mut analyzer = Analyzer::new(Options { at, transits: true, marks: true, ..Options::default() });
    if let Err(error) = analyzer.read(file, &mut |_| {}) {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    let (analysis, transits) = analyzer.finish_with_transits(&mut |_| {});
    serde_json::to_string(&analysis).expect("an analysis can be written");
    for direction in &analysis.directions {
        if let Ok(path) = MeasuredPath::new(direction, transits.of(direction), None) {
            Profile::parse("measured.toml", &path.toml()).expect("a measured path can be read");
        }
    }
    // The capture with itself: every packet is in both.
    let options = BothEndsOptions { forced: true, same_clock: how & 4 != 0, ..BothEndsOptions::default() };
    if let Ok(Some(matched)) = Matched::read([file, file], &options) {
        let report = matched.report(["a".to_owned(), "b".to_owned()]);
        assert!(report.flows.iter().all(|flow| flow.lost == 0), "{report:?}");
        if let Ok(path) = matched.path(None) {
            Profile::parse("measured.toml", &path.toml()).expect("a measured path can be read");
        }
    }
}
