//! The points of the plots of one direction, thinned out to what a screen can show.

use std::collections::BTreeMap;

use reknit_trace::{DirectionReport, Event, Mark, Passed, Verdict};
use reknit_units::Instant;
use serde::Serialize;

/// Strips of the offsets: points of one kind in the same time step and strip become one.
const STRIPS: u64 = 400;
/// Points of one kind for each time step, on average. Beyond, points are left out, and the page says so.
const MAX_PER_STEP: usize = 3;

/// A point, or several that are close together.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Microseconds from the beginning of the plots.
    at: u64,
    /// The first packet's number in the file.
    frame: u64,
    from: u64,
    to: u64,
    /// Packets.
    count: u64,
    /// How late they were at most, microseconds, and by how many packets.
    late: u64,
    places: u64,
}

/// Points of one kind.
#[derive(Debug, Default)]
struct Series {
    points: BTreeMap<(u64, u64), Point>,
    left_out: u64,
}

/// The points in columns; times, numbers and offsets as differences from the previous point, which are short.
#[derive(Debug, Default, Serialize)]
pub(super) struct Columns {
    at: Vec<i64>,
    frame: Vec<i64>,
    from: Vec<i64>,
    len: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    count: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    late: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<u64>,
}

/// What the points show; the script has the same names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Data,
    Again,
    Ack,
    Edge,
    Sack,
    Duplicate,
    Lost,
    Reordered,
    Copied,
    Spurious,
    Discarded,
    Unknown,
    Incident,
}

impl Kind {
    const ALL: [Kind; 13] = [
        Kind::Data,
        Kind::Again,
        Kind::Ack,
        Kind::Edge,
        Kind::Sack,
        Kind::Duplicate,
        Kind::Lost,
        Kind::Reordered,
        Kind::Copied,
        Kind::Spurious,
        Kind::Discarded,
        Kind::Unknown,
        Kind::Incident,
    ];
}

/// What the page draws of one direction.
#[derive(Debug, Serialize)]
pub(super) struct Drawing {
    /// Seconds from the beginning of the capture to that of the plots.
    starts_s: f64,
    /// Microseconds that became one point.
    step_us: u64,
    left_out: u64,
    bottleneck_mbit_s: Option<f64>,
    /// All kinds.
    #[serde(flatten)]
    kinds: BTreeMap<Kind, Columns>,
}

/// Collects the points of one direction.
#[derive(Debug)]
pub(super) struct Sketch {
    first: Instant,
    starts_s: f64,
    step_us: u64,
    strip: u64,
    most: usize,
    bottleneck_mbit_s: Option<f64>,
    kinds: BTreeMap<Kind, Series>,
}

impl Sketch {
    /// For a direction whose marks begin at `first`, `starts_s` after the beginning of the capture, with about `steps`
    /// points of each kind.
    pub(super) fn new(direction: &DirectionReport, first: Instant, starts_s: f64, steps: u64) -> Sketch {
        let whole = direction.packets <= steps;
        #[expect(clippy::cast_sign_loss, reason = "durations are not negative")]
        let lasts_us = (direction.duration_s * 1e6) as u64;
        let step_us = if whole { 0 } else { lasts_us.div_ceil(steps).max(1) };
        let strip = if whole { 0 } else { (direction.bytes / STRIPS).max(1) };
        let most = if whole { usize::MAX } else { steps as usize * MAX_PER_STEP };
        let kinds = Kind::ALL.map(|kind| (kind, Series::default())).into();
        let bottleneck_mbit_s = direction.bottleneck_mbit_s;
        Sketch { first, starts_s, step_us, strip, most, bottleneck_mbit_s, kinds }
    }

    /// Something passes.
    pub(super) fn mark(&mut self, mark: &Mark) {
        let point = self.point(mark.at, mark.frame, (mark.from, mark.to));
        match mark.what {
            Passed::Data => self.add(Kind::Data, point),
            Passed::Retransmission => self.add(Kind::Again, point),
            Passed::Ack { edge } => {
                self.replace(Kind::Ack, point);
                if let Some(edge) = edge {
                    self.replace(Kind::Edge, Point { from: edge, to: edge, ..point });
                }
            }
            Passed::Sack => self.add(Kind::Sack, point),
            Passed::Duplicate => self.add(Kind::Duplicate, point),
        }
    }

    /// A verdict that counts.
    pub(super) fn verdict(&mut self, event: &Event) {
        let point = self.point(event.at, event.frame, (event.offset, event.offset + u64::from(event.len)));
        match event.verdict {
            Verdict::Lost => self.add(Kind::Lost, point),
            Verdict::Reordered { packets, late } => {
                self.add(Kind::Reordered, Point { late: late.as_nanos() / 1_000, places: packets.into(), ..point });
            }
            Verdict::Duplicated => self.add(Kind::Copied, point),
            Verdict::Spurious(_) => self.add(Kind::Spurious, point),
            Verdict::Discarded => self.add(Kind::Discarded, point),
            Verdict::Unknown(_) => self.add(Kind::Unknown, point),
            Verdict::Incident { .. } => self.add(Kind::Incident, point),
        }
    }

    fn point(&self, at: Instant, frame: u64, (from, to): (u64, u64)) -> Point {
        let at = at.since(self.first).as_nanos() / 1_000;
        Point { at, frame, from, to: to.max(from), count: 1, late: 0, places: 0 }
    }

    fn add(&mut self, kind: Kind, point: Point) {
        // Points that are not thinned out are told apart by their number in the file.
        let key = match self.step_us {
            0 => (point.frame, point.from),
            step => (point.at / step, point.from / self.strip),
        };
        let series = self.kinds.entry(kind).or_default();
        if series.points.len() >= self.most && !series.points.contains_key(&key) {
            series.left_out += 1;
            return;
        }
        let known = series.points.entry(key).or_insert(Point { count: 0, ..point });
        known.from = known.from.min(point.from);
        known.to = known.to.max(point.to);
        known.count += 1;
        known.late = known.late.max(point.late);
        known.places = known.places.max(point.places);
    }

    /// For lines: only the last point of each time step is kept.
    fn replace(&mut self, kind: Kind, point: Point) {
        let key = point.at.checked_div(self.step_us).unwrap_or(point.frame);
        let series = self.kinds.entry(kind).or_default();
        let highest = series.points.get(&(key, 0)).map_or(0, |known| known.to);
        let to = point.to.max(if kind == Kind::Ack { highest } else { 0 });
        series.points.insert((key, 0), Point { from: to, to, ..point });
    }

    pub(super) fn finish(self) -> Drawing {
        let left_out = self.kinds.values().map(|series| series.left_out).sum();
        let kinds = self.kinds.into_iter().map(|(kind, series)| (kind, series.columns())).collect();
        let Sketch { starts_s, step_us, bottleneck_mbit_s, .. } = self;
        Drawing { starts_s, step_us, left_out, bottleneck_mbit_s, kinds }
    }
}

impl Series {
    fn columns(self) -> Columns {
        let mut points: Vec<Point> = self.points.into_values().collect();
        points.sort_by_key(|point| (point.at, point.frame));
        let mut columns = Columns::default();
        let mut last = (0, 0, 0);
        for point in &points {
            columns.at.push(point.at.wrapping_sub(last.0).cast_signed());
            columns.frame.push(point.frame.wrapping_sub(last.1).cast_signed());
            columns.from.push(point.from.wrapping_sub(last.2).cast_signed());
            columns.len.push(point.to - point.from);
            last = (point.at, point.frame, point.from);
        }
        if points.iter().any(|point| point.count > 1) {
            columns.count = points.iter().map(|point| point.count).collect();
        }
        if points.iter().any(|point| point.places > 0) {
            columns.late = points.iter().map(|point| point.late).collect();
            columns.places = points.iter().map(|point| point.places).collect();
        }
        columns
    }
}
