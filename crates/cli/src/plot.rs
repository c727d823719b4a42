//! Pictures of what a path does.

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use reknit_path::{Passage, Passed};

use crate::Failure;

const SIZE: (u32, u32) = (900, 640);
/// Dots drawn at most.
const DOTS: usize = 4000;
/// Blue and orange that colour-blind eyes tell apart (Okabe and Ito).
const DELAY: RGBColor = RGBColor(0, 114, 178);
const EXTENT: RGBColor = RGBColor(213, 94, 0);

/// Draws the delays over time and how many packets were displaced by how much.
pub(crate) fn passage(name: &str, passage: &Passage, file: &Path) -> Result<(), Failure> {
    if !file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        return Err(Failure::Usage(format!("--plot {}: only SVG is drawn; end the name in .svg", file.display())));
    }
    let mut svg = String::new();
    draw(name, passage, &mut svg).map_err(|error| Failure::Failed(format!("--plot: {error}")))?;
    std::fs::write(file, svg).map_err(|error| Failure::Failed(format!("--plot {}: {error}", file.display())))
}

fn draw(name: &str, passage: &Passage, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (upper, lower) = root.split_vertically(SIZE.1 / 2);
    let dots: Vec<(f64, f64)> = passage.arrivals().map(dot).collect();
    let every = dots.len().div_ceil(DOTS).max(1);
    let end = dots.iter().map(|dot| dot.0).fold(0.0, f64::max);
    let top = dots.iter().map(|dot| dot.1).fold(1e-3, f64::max) * 1.05;
    let title = format!("{name}: one-way delay of each packet");
    let mut chart = axes(&upper, &title, 0.0..end, 0.0..top)?;
    chart.configure_mesh().light_line_style(TRANSPARENT).x_desc("sent at, s").y_desc("delay, ms").draw()?;
    chart.draw_series(dots.iter().step_by(every).map(|dot| Circle::new(*dot, 1, DELAY.filled())))?;

    let counts = displacements(passage);
    let highest = counts.iter().copied().max().unwrap_or(0).max(1);
    let mut chart =
        axes(&lower, "reordered packets by extent (RFC 4737)", 0u32..counts.len() as u32 + 1, 0u32..highest + 1)?;
    chart.configure_mesh().light_line_style(TRANSPARENT).x_desc("extent, packets").y_desc("packets").draw()?;
    let bar = |(i, count): (u32, &u32)| Rectangle::new([(i, 0), (i + 1, *count)], EXTENT.filled());
    chart.draw_series((1..).zip(&counts).map(bar))?;
    root.present()?;
    Ok(())
}

type Chart<'a, X, Y> = ChartContext<
    'a,
    SVGBackend<'a>,
    Cartesian2d<<X as AsRangedCoord>::CoordDescType, <Y as AsRangedCoord>::CoordDescType>,
>;

fn axes<'a, X, Y>(
    area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>,
    title: &str,
    x: X,
    y: Y,
) -> Result<Chart<'a, X, Y>, Box<dyn std::error::Error>>
where
    X: AsRangedCoord,
    Y: AsRangedCoord,
    X::CoordDescType: ValueFormatter<X::Value>,
    Y::CoordDescType: ValueFormatter<Y::Value>,
{
    let chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(60)
        .build_cartesian_2d(x, y)?;
    Ok(chart)
}

/// When a packet was sent, in seconds, and its delay in milliseconds.
fn dot(packet: &Passed) -> (f64, f64) {
    (packet.sent.as_secs_f64(), packet.delay().as_secs_f64() * 1e3)
}

/// How many packets have the extents 1, 2, 3, ...
fn displacements(passage: &Passage) -> Vec<u32> {
    let extents = passage.extents();
    let mut counts = vec![0; extents.iter().copied().max().unwrap_or(0) as usize];
    for extent in extents {
        counts[extent as usize - 1] += 1;
    }
    counts
}
