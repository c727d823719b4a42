//! Pictures of what a path does to packets.

use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use reknit_config::file_error;
use reknit_path::{Arrival, Train, TrainResult};

use crate::style::colours;
use crate::{Failure, output, table};

/// Width and height of an SVG in pixels. A PNG has [`SCALE`] times as many.
const SIZE: (i32, i32) = (900, 860);
const SCALE: i32 = 2;
/// The most dots to draw; dots that could not be distinguished are left out.
const DOTS: usize = 1700;
/// The most bars of a histogram.
const BARS: u32 = 60;
/// Packets that are drawn in detail, and how many of them come before the first packet that was reordered, lost or
/// copied.
const CLOSE: u32 = 200;
const BEFORE: u32 = 50;
/// Up to this number, dots are drawn larger.
const FEW: usize = 200;
/// Characters per line of the description below the title.
const LINE: usize = 115;
type Problem = Box<dyn std::error::Error>;

/// What to draw.
pub(crate) struct Picture<'a> {
    /// The title.
    pub(crate) title: String,
    /// The description below it.
    pub(crate) description: &'a str,
    /// The packets that were sent.
    pub(crate) train: Train,
    /// What arrived.
    pub(crate) result: &'a TrainResult,
}

/// The file format of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Svg,
    Png,
}

impl Format {
    /// The format by the extension of `file`.
    fn of(file: &Path) -> Result<Format, Failure> {
        let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            _ => {
                let message = format!("--plot {}: the file name must end in .svg or .png", file.display());
                Err(Failure::Usage(message))
            }
        }
    }
}

/// Refuses a file name with an unsupported extension.
pub(crate) fn check(file: &Path) -> Result<(), Failure> {
    Format::of(file).map(drop)
}

impl Picture<'_> {
    /// Writes it to `file`.
    pub(crate) fn save(&self, file: &Path) -> Result<(), Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::Failed(format!("--plot {}: {error}", file.display()));
        let bytes = match Format::of(file)? {
            Format::Svg => self.svg().map(String::into_bytes),
            Format::Png => self.png(),
        };
        std::fs::write(file, bytes.map_err(|error| failed(&error))?).map_err(|error| failed(&file_error(&error)))
    }

    /// The picture as SVG.
    pub(crate) fn svg(&self) -> Result<String, Problem> {
        let mut svg = String::new();
        let marks = self.draw(
            &SVGBackend::with_string(&mut svg, (SIZE.0.cast_unsigned(), SIZE.1.cast_unsigned())).into_drawing_area(),
            1,
        )?;
        // One path for all dots of a colour takes a tenth of the space that circles would need.
        let end = svg.rfind("</svg>").unwrap_or(svg.len());
        svg.truncate(end);
        for layer in marks.iter().flat_map(Marks::layers) {
            svg.push_str(&dots(&layer));
        }
        svg.push_str("</svg>\n");
        Ok(svg)
    }

    /// The picture as PNG.
    fn png(&self) -> Result<Vec<u8>, Problem> {
        let (width, height) = ((SIZE.0 * SCALE).cast_unsigned(), (SIZE.1 * SCALE).cast_unsigned());
        let mut pixels = vec![0; (width * height * 3) as usize];
        {
            let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
            let marks = self.draw(&root, SCALE)?;
            for Layer { points, colour, mark, .. } in marks.iter().flat_map(Marks::layers) {
                for &(x, y) in points {
                    match mark {
                        Mark::Dot => root.draw(&Circle::new((x, y), radius(points) * SCALE, colour.filled()))?,
                        Mark::Tick => {
                            root.draw(&Rectangle::new([(x, y), (x + 1, y + TICK * SCALE)], colour.filled()))?;
                        }
                    }
                }
            }
            root.present()?;
        }
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header()?.write_image_data(&pixels)?;
        Ok(bytes)
    }

    /// Draws everything except the marks, and returns their positions. `unit` is the size of a pixel of [`SIZE`].
    fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>, unit: i32) -> Result<[Marks; 2], Problem>
    where
        DB::ErrorType: 'static,
    {
        // The font is built in, so that text has the same size on every machine.
        plotters::style::register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular())
            .map_err(|_| "the font cannot be read")?;
        root.fill(&colours().background)?;
        let lines = table::wrap(self.description, LINE, 0);
        let font = |size: i32| TextStyle::from(("sans-serif", size * unit).into_font()).color(&colours().ink);
        root.draw_text(&self.title, &font(20), (14 * unit, 10 * unit))?;
        let mut below = 36;
        for line in lines.lines() {
            root.draw_text(line, &font(14), (14 * unit, below * unit))?;
            below += 18;
        }
        let (_, charts) = root.split_vertically(below * unit);
        let third = (SIZE.1 - below) * unit / 3;
        let (upper, charts) = charts.split_vertically(third);
        let (middle, lower) = charts.split_vertically(third);
        let all = 0..self.train.packets;
        let close = self.close();
        let title = format!("{} packets over time", output::count(f64::from(self.train.packets)));
        let closer =
            format!("packets {} to {}", output::count(close.start.into()), output::count((close.end - 1).into()));
        let marks = [self.delays(&upper, unit, all, &title)?, self.delays(&middle, unit, close, &closer)?];
        let extents = self.result.extents();
        if extents.is_empty() {
            let delays: Vec<f64> = self.result.arrivals().map(|packet| dot(packet).1).collect();
            let title = "no packet is reordered; distribution of delays";
            histogram(&lower, unit, &Bars::of_delays(&delays), title, "one-way delay, ms", colours().in_order)?;
        } else {
            let title = format!("reordering extents of the {} reordered packets", output::whole(extents.len() as u64));
            let x = "reordering extent (RFC 4737), packets";
            histogram(&lower, unit, &Bars::of_extents(&extents), &title, x, colours().reordered)?;
        }
        Ok(marks)
    }

    /// The packets to draw in detail: around the first that was reordered, else lost, else copied.
    fn close(&self) -> Range<u32> {
        let late = lateness(self.result).into_iter().filter_map(|(packet, late)| late.then_some(packet.number)).min();
        let missing = self.result.missing();
        let copy = self.result.copies.iter().find(|packet| !packet.first).map(|packet| packet.number);
        let first = late.or(missing.first().copied()).or(copy).unwrap_or(0);
        let start = first.saturating_sub(BEFORE).min(self.train.packets.saturating_sub(CLOSE));
        start..(start + CLOSE).min(self.train.packets)
    }

    /// The delays of these packets over time.
    fn delays<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        unit: i32,
        numbers: Range<u32>,
        title: &str,
    ) -> Result<Marks, Problem>
    where
        DB::ErrorType: 'static,
    {
        let shown = || self.result.copies.iter().filter(|packet| numbers.contains(&packet.number));
        let sent = |number: u32| self.train.departure(number).as_secs_f64();
        let (bottom, top) = span(shown().map(|packet| dot(packet).1));
        let times = sent(numbers.start)..sent(numbers.end);
        let chart = axes(area, unit, title, (times, bottom..top), ("sent at, s", "one-way delay, ms"))?;
        let place = |packet: &Arrival| chart.backend_coord(&dot(packet));
        let mut marks = Marks::default();
        for (packet, late) in lateness(self.result) {
            if numbers.contains(&packet.number) {
                let layer = if late { &mut marks.reordered } else { &mut marks.in_order };
                layer.push(place(packet));
            }
        }
        marks.copied = shown().filter(|packet| !packet.first).map(place).collect();
        let floor = chart.backend_coord(&(0.0, bottom)).1 - TICK * unit;
        let lost = self.result.missing().into_iter().filter(|number| numbers.contains(number));
        marks.lost = lost.map(|number| (chart.backend_coord(&(sent(number), bottom)).0, floor)).collect();
        marks.thin_out();
        legend(area, unit, &marks)?;
        Ok(marks)
    }
}

/// The first copies in the order of arrival, and whether each is reordered.
fn lateness(result: &TrainResult) -> Vec<(&Arrival, bool)> {
    let mut highest = None;
    let mut late = |number| {
        let late = highest.is_some_and(|highest| number < highest);
        highest = highest.max(Some(number));
        late
    };
    result.arrivals().map(|packet| (packet, late(packet.number))).collect()
}

/// The range of an axis for `values`: from zero, unless all values would then lie in a narrow band.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) =
        values.fold((f64::INFINITY, 1e-3_f64), |(least, most), value| (least.min(value), most.max(value)));
    let band = most - least;
    if least < 0.6 * most || band < 1e-3 * most {
        return (0.0, 1.06 * most);
    }
    (least - 0.06 * band, most + 0.06 * band)
}

/// When a packet was sent, in seconds, and its delay in milliseconds.
fn dot(packet: &Arrival) -> (f64, f64) {
    (packet.sent.as_secs_f64(), packet.delay().as_secs_f64() * 1e3)
}

/// The unit of the histograms' counts.
const PACKETS: &str = "packets";

/// Height of the tick for a lost packet.
const TICK: i32 = 7;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    Dot,
    Tick,
}

/// A position in a picture, in pixels from the upper left.
type Point = (i32, i32);

/// Marks of one kind.
struct Layer<'a> {
    points: &'a [Point],
    colour: RGBColor,
    mark: Mark,
    /// Their name in the legend.
    word: &'static str,
}

/// The positions of the marks.
#[derive(Default)]
struct Marks {
    in_order: Vec<Point>,
    reordered: Vec<Point>,
    copied: Vec<Point>,
    lost: Vec<Point>,
}

impl Marks {
    /// The layers that have marks.
    fn layers(&self) -> Vec<Layer<'_>> {
        let layer = |points, colour, mark, word| Layer { points, colour, mark, word };
        let all = [
            layer(self.in_order.as_slice(), colours().in_order, Mark::Dot, "in order"),
            layer(&self.reordered, colours().reordered, Mark::Dot, "reordered"),
            layer(&self.copied, colours().copied, Mark::Dot, "copy"),
            layer(&self.lost, colours().lost, Mark::Tick, "lost"),
        ];
        all.into_iter().filter(|layer| !layer.points.is_empty()).collect()
    }

    /// Removes marks that would cover each other, and then enough of the others to limit the size of the file.
    fn thin_out(&mut self) {
        let all = [&mut self.in_order, &mut self.reordered, &mut self.copied, &mut self.lost];
        let total: usize = all
            .map(|layer| {
                layer.sort_unstable();
                layer.dedup();
                layer.len()
            })
            .iter()
            .sum();
        let keep = DOTS as f64 / total.max(DOTS) as f64;
        for layer in [&mut self.in_order, &mut self.reordered] {
            // Evenly, but without a period that could match one of the path's: by the golden ratio.
            let mut phase = 0.0;
            layer.retain(|_| {
                phase = (phase + 0.618_033_988_75_f64).fract();
                phase < keep
            });
        }
    }
}

/// The radius of the dots at `points`.
fn radius(points: &[Point]) -> i32 {
    if points.len() <= FEW { 2 } else { 1 }
}

/// One SVG path for all `points`: a line of length zero with round caps is a dot.
fn dots(&Layer { points, colour: RGBColor(r, g, b), mark, .. }: &Layer<'_>) -> String {
    let (width, cap) = if mark == Mark::Dot { (2 * radius(points), "round") } else { (1, "butt") };
    let mut path = String::new();
    let mut at = (0, 0);
    for &(x, y) in points {
        let _ = match mark {
            Mark::Dot => write!(path, "m{} {}h0", x - at.0, y - at.1),
            Mark::Tick => write!(path, "M{x} {y}v{TICK}"),
        };
        at = (x, y);
    }
    format!(
        "<path fill=\"none\" stroke=\"#{r:02x}{g:02x}{b:02x}\" stroke-width=\"{width}\" stroke-linecap=\"{cap}\" d=\"{path}\"/>\n"
    )
}

/// The legend, at the upper right.
fn legend<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, unit: i32, marks: &Marks) -> Result<(), Problem>
where
    DB::ErrorType: 'static,
{
    let style = TextStyle::from(("sans-serif", 14 * unit).into_font()).color(&colours().ink);
    let style = style.pos(Pos::new(HPos::Left, VPos::Center));
    let layers = marks.layers();
    let mut x = SIZE.0;
    for Layer { colour, mark, word, .. } in layers.into_iter().rev() {
        x -= 100;
        let at = (x * unit, 12 * unit);
        match mark {
            Mark::Dot => area.draw(&Circle::new(at, 4 * unit, colour.filled()))?,
            Mark::Tick => {
                let half = TICK * unit / 2;
                area.draw(&Rectangle::new([(at.0, at.1 - half), (at.0 + unit, at.1 + half)], colour.filled()))?;
            }
        }
        area.draw_text(word, &style, ((x + 9) * unit, 12 * unit))?;
    }
    Ok(())
}

/// A histogram.
struct Bars {
    /// Where the first bar begins, and how wide each is.
    from: f64,
    width: f64,
    counts: Vec<u32>,
}

impl Bars {
    fn of_extents(extents: &[u32]) -> Bars {
        let most = extents.iter().copied().max().unwrap_or(1);
        let width = most.div_ceil(BARS).max(1);
        let mut counts = vec![0; most.div_ceil(width) as usize];
        for extent in extents {
            counts[((extent - 1) / width) as usize] += 1;
        }
        // A bar for the single extent n is centred on n.
        Bars { from: if width == 1 { 0.5 } else { 1.0 }, width: f64::from(width), counts }
    }

    fn of_delays(delays: &[f64]) -> Bars {
        let (least, most) =
            delays.iter().fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), d| (least.min(*d), most.max(*d)));
        let from = if least < 0.6 * most || most - least < 1e-3 * most { 0.0 } else { least };
        let width = ((most - from) / f64::from(BARS)).max(1e-6);
        let mut counts = vec![0; BARS as usize];
        for delay in delays {
            #[expect(clippy::cast_sign_loss, reason = "no delay is less than the minimum")]
            let i = ((delay - from) / width) as usize;
            counts[i.min(BARS as usize - 1)] += 1;
        }
        Bars { from, width, counts }
    }
}

fn histogram<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    unit: i32,
    bars: &Bars,
    title: &str,
    x: &str,
    colour: RGBColor,
) -> Result<(), Problem>
where
    DB::ErrorType: 'static,
{
    let highest = f64::from(bars.counts.iter().copied().max().unwrap_or(0).max(1));
    let edge = |i: f64| bars.from + bars.width * i;
    let end = edge((bars.counts.len() as f64).max(4.0));
    let ranges = (bars.from..end, 0.0..highest * 1.06);
    let mut chart = axes(area, unit, title, ranges, (x, PACKETS))?;
    let filled = (0u32..).zip(&bars.counts).filter(|(_, count)| **count > 0);
    chart.draw_series(filled.map(|(i, count)| {
        let i = f64::from(i);
        Rectangle::new([(edge(i + 0.05), 0.0), (edge(i + 0.95), f64::from(*count))], colour.filled())
    }))?;
    Ok(())
}

type Chart<'a, DB> = ChartContext<'a, DB, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A chart with its axes; `labels` include the units.
fn axes<'a, DB: DrawingBackend + 'a>(
    area: &DrawingArea<DB, Shift>,
    unit: i32,
    title: &str,
    (x, y): (Range<f64>, Range<f64>),
    labels: (&str, &str),
) -> Result<Chart<'a, DB>, Problem>
where
    DB::ErrorType: 'static,
{
    let font = |size: i32| ("sans-serif", size * unit).into_font().color(&colours().ink);
    area.draw_text(title, &font(15), (82 * unit, 4 * unit))?;
    let across = number(x.end - x.start);
    let down = number(y.end - y.start);
    // Counts of packets are whole numbers.
    let packets = |value: &f64| if value.fract() == 0.0 { output::count(*value) } else { String::new() };
    let down: &dyn Fn(&f64) -> String = if labels.1 == PACKETS { &packets } else { &down };
    let mut chart = ChartBuilder::on(area)
        .margin_top(26 * unit)
        .margin_left(12 * unit)
        .margin_right(18 * unit)
        .margin_bottom(4 * unit)
        .x_label_area_size(40 * unit)
        .y_label_area_size(70 * unit)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(colours().grid.stroke_width(unit.cast_unsigned()))
        .axis_style(colours().ink.stroke_width(unit.cast_unsigned()))
        .x_desc(labels.0)
        .y_desc(labels.1)
        .x_label_formatter(&across)
        .y_label_formatter(&down)
        .label_style(font(13))
        .axis_desc_style(font(14))
        .y_labels(6)
        .draw()?;
    Ok(chart)
}

/// Formats the numbers of an axis that spans `span`.
fn number(span: f64) -> impl Fn(&f64) -> String {
    // Two significant digits of the difference between two labels.
    let digits = [8.0, 0.8, 0.08, 0.008].iter().take_while(|least| span < **least).count();
    move |value| {
        if digits == 0 { output::count(value.round()) } else { format!("{value:.digits$}") }
    }
}
