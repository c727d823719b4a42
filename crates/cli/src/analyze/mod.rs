//! `reknit analyze`: what happened to the packets in a capture, what it cost, and what to do.

mod annotate;
mod both_ends;
mod html;
mod qlog;
mod show;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use reknit_trace::{
    Analysis, Analyzer, CapturePoint, DirectionReport, Event, Events, Filter, Frame, Frames, MeasuredPath, Network,
    Options, ReadAhead, Time, Transits,
};
use reknit_units::Rate;

pub(crate) use self::show::estimated;
use crate::capture::unreadable;
use crate::input::{self, Given};
use crate::table::Screen;
use crate::{Failure, output};

/// Find lost, late, duplicated and spuriously retransmitted packets in captures and QUIC logs
///
/// Reads pcap, pcapng and qlog, plain or compressed with gzip or zstd. The first lines say what happened to the connection that
/// suffers most, what it cost, what to do, and how certain that is. A table of all connections follows, the worst first.
/// docs/guide/analyze.md is a tutorial.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  reknit analyze slow.pcapng
  reknit analyze slow.pcap.gz --stream 3 --path slow.toml
  reknit analyze slow.pcapng --host 192.0.2.7 --port 443 --from '60 s' --to '90 s'
  reknit analyze sender.pcapng receiver.pcapng
  reknit analyze client.sqlog server.sqlog
  reknit analyze slow.pcapng --html slow.html --annotate verdicts.pcapng
  tcpdump -i eth0 -s 128 -w - tcp | reknit analyze -")]
pub(crate) struct Args {
    /// Captures or qlogs; `-` is standard input. Two captures with the same packets are compared packet by packet; qlogs of the two
    /// ends of a connection are joined
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the captures were made [default: inferred for each connection]
    #[arg(long, value_enum, value_name = "PLACE")]
    at: Option<At>,
    /// Show only this connection, numbered as `tcp.stream` in Wireshark
    #[arg(long, value_name = "N", value_parser = input::whole::<0, { u32::MAX }>, allow_negative_numbers = true)]
    stream: Option<u32>,
    /// Only connections with an endpoint at this address or in this network
    #[arg(long, value_name = "ADDRESS", value_parser = input::given(input::network))]
    host: Option<Given<Network>>,
    /// Only connections with an endpoint on this port
    #[arg(long, value_name = "N", value_parser = input::whole::<0, { u16::MAX as u32 }>)]
    port: Option<u32>,
    /// Only packets from this time on: `12.5 s` after the first packet, a date and time such as `2026-11-26T14:44:08Z`, or seconds
    /// since 1970
    #[arg(long, value_name = "TIME", value_parser = input::given(input::time))]
    from: Option<Given<Time>>,
    /// Only packets up to this time
    #[arg(long, value_name = "TIME", value_parser = input::given(input::time))]
    to: Option<Given<Time>>,
    /// Compare two captures packet by packet even if they have few packets in common
    #[arg(long, conflicts_with = "separately")]
    both_ends: bool,
    /// Take the timestamps of two captures as they are, because one clock made them
    #[arg(long, conflicts_with = "separately")]
    same_clock: bool,
    /// Analyze each capture alone, even if two have the same packets
    #[arg(long)]
    separately: bool,
    /// Write the measured path of the worst connection to this file, for `reknit compare --path`
    #[arg(long, value_name = "FILE.toml")]
    path: Option<PathBuf>,
    /// Write an HTML page with plots; it works offline
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Write a copy of the capture in which each packet with a verdict has a comment, for Wireshark
    #[arg(long, value_name = "FILE.pcapng")]
    annotate: Option<PathBuf>,
    /// Print JSON (docs/reference/json.md; `reknit schema analysis`)
    #[arg(long)]
    json: bool,
}

/// A point of the path, as the data travels.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum At {
    /// At the host that sends the data
    Sender,
    /// Between the hosts
    Middle,
    /// At the host that receives the data
    Receiver,
}

impl From<At> for CapturePoint {
    fn from(at: At) -> CapturePoint {
        match at {
            At::Sender => CapturePoint::Sender,
            At::Middle => CapturePoint::Middle,
            At::Receiver => CapturePoint::Receiver,
        }
    }
}

impl Args {
    /// Which packets count.
    fn filter(&self) -> Filter {
        let port = self.port.map(|port| port as u16);
        let time = |time: &Option<Given<Time>>| time.as_ref().map(|given| given.value);
        Filter { host: self.host.as_ref().map(|given| given.value), port, from: time(&self.from), to: time(&self.to) }
    }

    /// The options that restrict what is analyzed, as they were written.
    fn filter_text(&self) -> String {
        let host = self.host.as_ref().map(|host| format!("--host {}", host.text));
        let port = self.port.map(|port| format!("--port {port}"));
        let time = |flag: &str, time: &Option<Given<Time>>| time.as_ref().map(|time| format!("{flag} '{}'", time.text));
        [host, port, time("--from", &self.from), time("--to", &self.to)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    check(args)?;
    input::check_distinct(&args.files)?;
    if qlog::run(args)? {
        return Ok(());
    }
    if both_ends::run(args)? {
        return Ok(());
    }
    let mut results = Vec::new();
    for file in &args.files {
        let mut events = Events::default();
        let mut observer = |event: &Event| {
            if args.annotate.is_some() {
                events.add(event);
            }
        };
        let (mut analysis, transits) = read(file, &options(args), &mut observer)?;
        keep_stream(&mut analysis, args.stream)?;
        if analysis.directions.is_empty() && args.filter() != Filter::default() {
            let message = format!("{}: no connection with data matches {}", analysis.file, args.filter_text());
            return Err(Failure::Failed(message));
        }
        warn(&analysis);
        // Standard input cannot be read again.
        if file.as_os_str() != "-" {
            reknit_compare::advise(&mut analysis, file, &options(args)).map_err(Failure::Failed)?;
        }
        if let Some(path) = &args.path {
            let (_, measured) = measured_path(&analysis, &transits, None)?;
            output::write_file("--path", path, measured.toml())?;
        }
        if let Some(to) = &args.html {
            html::write(to, file, &analysis, &options(args))?;
        }
        if let Some(to) = &args.annotate {
            annotate::write(to, file, &analysis, events)?;
        }
        results.push(analysis);
    }
    if args.json {
        return match &results[..] {
            [only] => output::print_json(only),
            several => output::print_json(&several),
        };
    }
    let texts: Vec<String> = results.iter().map(|analysis| show::text(analysis, Screen::stdout())).collect();
    output::print(&texts.join("\n"))
}

/// Files that are written are about one capture, and pages and annotated captures need to read it twice.
fn check(args: &Args) -> Result<(), Failure> {
    if let (Some(from), Some(to)) = (&args.from, &args.to)
        && is_before(to.value, from.value)
    {
        return Err(Failure::Usage(format!("--to {}: must not be before --from {}", to.text, from.text)));
    }
    let written = [("--path", &args.path), ("--html", &args.html), ("--annotate", &args.annotate)];
    output::check_writable(&written, &args.files)?;
    for (name, _) in written.iter().filter(|(_, file)| file.is_some()) {
        if *name == "--path" && args.files.len() == 2 && !args.separately {
            continue;
        }
        let refuse = |why: &str| Err(Failure::Usage(format!("{name} {why}")));
        if args.files.len() > 1 {
            return refuse("works on a single capture; give one file");
        }
        if *name != "--path" && args.files.iter().any(|file| file.as_os_str() == "-") {
            return refuse("reads the capture twice, which standard input does not allow; save it to a file first");
        }
    }
    Ok(())
}

/// True if both are of the same kind, and the first is earlier.
fn is_before(one: Time, other: Time) -> bool {
    match (one, other) {
        (Time::Since(one), Time::Since(other)) | (Time::At(one), Time::At(other)) => one < other,
        _ => false,
    }
}

fn options(args: &Args) -> Options {
    let (transits, filter) = (args.path.is_some(), args.filter());
    Options { at: args.at.map(CapturePoint::from), transits, filter, ..Options::default() }
}

/// Reads one capture. The transits of packets are kept if `options` ask for them.
pub(crate) fn read(
    file: &Path,
    options: &Options,
    observer: &mut dyn FnMut(&Event),
) -> Result<(Analysis, Transits), Failure> {
    let reader = open(file)?;
    let mut analyzer = Analyzer::new(*options);
    analyzer.read(reader, observer).map_err(|error| Failure::Failed(unreadable(file, &error)))?;
    let (mut analysis, transits) = analyzer.finish_with_transits(observer);
    analysis.file = file.display().to_string();
    if options.filter == Filter::default() {
        analysis.refuse_without_tcp().map_err(Failure::Failed)?;
    }
    Ok((analysis, transits))
}

/// Prints the warnings.
pub(crate) fn warn(analysis: &Analysis) {
    for warning in &analysis.warnings {
        output::note(format_args!("warning: {}: {warning}", analysis.file));
    }
}

/// Opens a capture or a log; `-` is standard input.
fn open(file: &Path) -> Result<impl Read, Failure> {
    if file.as_os_str() == "-" {
        return ReadAhead::new(io::stdin()).map_err(|error| Failure::Failed(unreadable(file, &error.into())));
    }
    reknit_compare::open_capture(file).map_err(Failure::Failed)
}

/// Calls `each` with every frame of a capture that has been read once.
fn frames(file: &Path, each: &mut dyn FnMut(&Frame<'_>)) -> Result<(), Failure> {
    let refuse = |error| Failure::Failed(unreadable(file, &error));
    let mut frames = Frames::new(open(file)?).map_err(refuse)?;
    while let Some(frame) = frames.next_frame() {
        each(&frame);
    }
    Ok(())
}

/// Keeps only the connection with this number, if one is given.
pub(crate) fn keep_stream(analysis: &mut Analysis, stream: Option<u32>) -> Result<(), Failure> {
    let Some(number) = stream else { return Ok(()) };
    analysis.directions.retain(|direction| direction.stream == number);
    if analysis.directions.is_empty() {
        let known = match analysis.streams {
            0 => "it has none".to_owned(),
            1 => "its only connection is 0".to_owned(),
            streams => format!("its connections are 0 to {}", streams - 1),
        };
        let name = &analysis.file;
        return Err(Failure::Usage(format!("--stream {number}: {name} has no connection {number} with data; {known}")));
    }
    Ok(())
}

/// The path of the worst direction.
pub(crate) fn measured_path<'a>(
    analysis: &'a Analysis,
    transits: &Transits,
    rate: Option<Rate>,
) -> Result<(&'a DirectionReport, MeasuredPath), Failure> {
    let file = &analysis.file;
    let Some(worst) = analysis.directions.first() else {
        return Err(Failure::Failed(format!("{file}: no connection carried data")));
    };
    let path = MeasuredPath::new(worst, transits.of(worst), rate);
    Ok((worst, path.map_err(|message| Failure::Failed(format!("{file}: {message}")))?))
}
