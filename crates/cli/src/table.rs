//! Text tables: aligned columns that fit the terminal.
//!
//! A table that is too wide is made to fit in three steps. First, heads are wrapped, and so is text within its column.
//! Then the least important columns are left out, and a line below the table names them. If not even the columns that
//! identify the rows fit, each row becomes a block with one line per value. If the output is not a terminal, everything
//! is shown.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::IsTerminal;

/// The output that a table or text is formatted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Screen {
    /// Characters per line; none if the output is not a terminal, so that the width of tables is not limited.
    pub(crate) width: Option<usize>,
    /// Whether headings are bold.
    pub(crate) bold: bool,
}

impl Screen {
    /// Standard output. `COLUMNS` overrides the width of the terminal, and sets a width if there is no terminal.
    pub(crate) fn stdout() -> Screen {
        let is_terminal = std::io::stdout().is_terminal();
        let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let measured = || terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        Screen {
            width: from_environment.or_else(|| is_terminal.then(measured)),
            bold: is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }

    /// The width of paragraphs.
    pub(crate) fn text_width(self) -> usize {
        self.width.unwrap_or(80)
    }

    /// `text` as a heading.
    pub(crate) fn heading(self, text: &str) -> String {
        if self.bold { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// One column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    title: Cow<'static, str>,
    /// 0 if the column identifies the rows, or is the main result. The column with the highest rank is left out first;
    /// of several, the last one.
    rank: u8,
    align: Align,
    /// The width to which cells may be wrapped.
    folds_to: Option<usize>,
    pub(crate) cells: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

impl Column {
    pub(crate) fn new(title: impl Into<Cow<'static, str>>, rank: u8, align: Align) -> Column {
        Column { title: title.into(), rank, align, folds_to: None, cells: Vec::new() }
    }

    /// A column with the cell of each row.
    pub(crate) fn of<R>(
        title: impl Into<Cow<'static, str>>,
        rank: u8,
        align: Align,
        rows: impl IntoIterator<Item = R>,
        cell: impl Fn(R) -> String,
    ) -> Column {
        Column { cells: rows.into_iter().map(cell).collect(), ..Column::new(title, rank, align) }
    }

    /// A column of text that may be wrapped to `width`.
    pub(crate) fn wrapping(title: &'static str, rank: u8, width: usize) -> Column {
        Column { folds_to: Some(width), ..Column::new(title, rank, Align::Left) }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// True for words, false for numbers.
    pub(crate) fn is_text(&self) -> bool {
        self.align == Align::Left
    }

    /// True if narrow screens may leave the column out.
    pub(crate) fn is_minor(&self) -> bool {
        self.rank > 0
    }

    /// The width of the column without wrapping.
    fn width(&self) -> usize {
        length(&self.title).max(self.widest_cell())
    }

    /// The smallest width to which it may be wrapped.
    fn least_width(&self) -> usize {
        let longest_word = self.title.split(' ').map(length).max().unwrap_or(0);
        let cells = self.widest_cell();
        longest_word.max(self.folds_to.map_or(cells, |least| least.min(cells)))
    }

    fn widest_cell(&self) -> usize {
        self.cells.iter().map(|cell| length(cell)).max().unwrap_or(0)
    }

    fn pad(&self, line: &str, width: usize) -> String {
        match self.align {
            Align::Left => format!("{line:width$}"),
            Align::Right => format!("{line:>width$}"),
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Spaces between columns.
const GAP: usize = 2;

/// Headings, each with the number of the row that it precedes.
pub(crate) type Headings = [(usize, String)];

/// The table on `screen`.
pub(crate) fn render(columns: &[Column], screen: Screen) -> String {
    render_grouped(columns, &[], screen)
}

/// The same, with headings between the rows.
pub(crate) fn render_grouped(columns: &[Column], headings: &Headings, screen: Screen) -> String {
    let mut kept: Vec<&Column> = columns.iter().collect();
    let mut left_out: Vec<&str> = Vec::new();
    loop {
        if let Some(widths) = widths(&kept, screen.width.unwrap_or(usize::MAX)) {
            return aligned(&kept, &widths, headings, screen) + &note(&left_out, screen);
        }
        let highest = kept.iter().map(|column| column.rank).max().unwrap_or(0);
        if highest == 0 {
            return blocks(&kept, headings, screen) + &note(&left_out, screen);
        }
        let last = kept.iter().rposition(|column| column.rank == highest).unwrap_or(0);
        left_out.push(&kept.remove(last).title);
    }
}

/// The width of each column; none if they do not fit.
fn widths(columns: &[&Column], room: usize) -> Option<Vec<usize>> {
    let gaps = GAP * columns.len().saturating_sub(1);
    let room = room.checked_sub(gaps)?;
    let natural: Vec<usize> = columns.iter().map(|column| column.width()).collect();
    if natural.iter().sum::<usize>() <= room {
        return Some(natural);
    }
    let mut widths: Vec<usize> = columns.iter().map(|column| column.least_width()).collect();
    let spare = room.checked_sub(widths.iter().sum())?;
    for _ in 0..spare {
        // The column that is wrapped most gets more room.
        let wrapped = |i: &usize| natural[*i] as f64 / widths[*i].max(1) as f64;
        let most = (0..widths.len()).rev().max_by(|a, b| wrapped(a).total_cmp(&wrapped(b)));
        if let Some(most) = most {
            widths[most] += 1;
        }
    }
    Some(widths)
}

fn aligned(columns: &[&Column], widths: &[usize], headings: &Headings, screen: Screen) -> String {
    let mut text = String::new();
    let mut heads: Vec<Vec<String>> = columns.iter().zip(widths).map(|(c, width)| fold(&c.title, *width)).collect();
    let tallest = heads.iter().map(Vec::len).max().unwrap_or(0);
    for head in &mut heads {
        head.splice(0..0, vec![String::new(); tallest - head.len()]);
    }
    for line in lines(columns, widths, &heads) {
        let _ = writeln!(text, "{}", screen.heading(&line));
    }
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        text.push_str(&heading(headings, row));
        let cells: Vec<Vec<String>> = columns.iter().zip(widths).map(|(c, w)| fold(&c.cells[row], *w)).collect();
        for line in lines(columns, widths, &cells) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// `text` in lines of at most `width`; longer words continue on the next line.
fn fold(text: &str, width: usize) -> Vec<String> {
    let wrapped = wrap(text, width, 0);
    let pieces = wrapped.lines().flat_map(|line| {
        let characters: Vec<char> = line.chars().collect();
        characters.chunks(width.max(1)).map(|piece| piece.iter().collect()).collect::<Vec<String>>()
    });
    pieces.collect()
}

/// The lines of a row whose cells have been wrapped.
fn lines(columns: &[&Column], widths: &[usize], cells: &[Vec<String>]) -> Vec<String> {
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |i: usize| {
        let parts = columns.iter().zip(widths).zip(cells);
        let padded = parts.map(|((column, width), cell)| column.pad(cell.get(i).map_or("", String::as_str), *width));
        padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// A block for each row.
fn blocks(columns: &[&Column], headings: &Headings, screen: Screen) -> String {
    let mut text = String::new();
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        let heading = heading(headings, row);
        text.push_str(if heading.is_empty() && row > 0 { "\n" } else { &heading });
        for column in columns {
            let line = format!("{}: {}", column.title, column.cells[row]);
            let _ = writeln!(text, "{}", wrap(&line, screen.text_width(), 2));
        }
    }
    text
}

fn heading(headings: &Headings, row: usize) -> String {
    let above = headings.iter().filter(|(at, _)| *at == row);
    above.flat_map(|(_, heading)| ["\n", heading, "\n"]).collect()
}

fn note(left_out: &[&str], screen: Screen) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let width = screen.text_width();
    let note = format!("Left out to fit {width} characters, least important first: {}.", left_out.join(", "));
    format!("{}\n", wrap(&note, width, 0))
}

/// Names with their descriptions beside them, or below them if there is no room.
pub(crate) fn definitions(items: &[(String, String)], width: usize) -> String {
    const LEAST: usize = 24;
    let beside = items.iter().map(|(name, _)| length(name)).max().unwrap_or(0) + GAP;
    let (indent, is_beside) = if beside + LEAST <= width { (beside, true) } else { (4, false) };
    let mut text = String::new();
    for (name, description) in items {
        let start = if is_beside { format!("{name:indent$}") } else { format!("{name}\n{:indent$}", "") };
        let wrapped = wrap(description, width.saturating_sub(indent), 0).replace('\n', &format!("\n{:indent$}", ""));
        let _ = writeln!(text, "{start}{wrapped}");
    }
    text
}

/// Units that stay on the same line as their number.
const UNITS: [&str; 11] = ["%", "ns", "us", "ms", "s", "min", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "MB"];

fn is_unit(word: &str) -> bool {
    UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']))
}

/// `text` broken into lines of at most `width`; each line after the first is indented by `indent`. Numbers stay with
/// their units.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is_number = word.ends_with(|c: char| c.is_ascii_digit());
        let word = match words.next_if(|next| is_number && is_unit(next)) {
            Some(unit) => format!("{word} {unit}"),
            None => word.to_owned(),
        };
        let len = word.chars().count();
        if column > 0 && column + 1 + len > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += len;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let mut name = Column::new("variant", 0, Align::Left);
        let mut rate = Column::new("Mbit/s", 0, Align::Right);
        let mut more = Column::new("undos", 1, Align::Right);
        name.cells = vec!["sack".to_owned(), "dsack-r".to_owned()];
        rate.cells = vec!["0.2".to_owned(), "10.15".to_owned()];
        more.cells = vec!["0".to_owned(), "7".to_owned()];
        vec![name, rate, more]
    }

    fn at(width: usize) -> Screen {
        Screen { width: Some(width), bold: false }
    }

    #[test]
    fn columns_line_up() {
        let whole = "variant  Mbit/s  undos\nsack        0.2      0\ndsack-r   10.15      7\n";
        assert_eq!(render(&columns(), at(80)), whole);
        assert_eq!(render(&columns(), at(22)), whole);
    }

    #[test]
    fn the_least_important_columns_are_left_out_and_named() {
        let mut columns = columns();
        let mut packets = Column::new("packets", 2, Align::Right);
        packets.cells = vec!["1".to_owned(), "2".to_owned()];
        columns.insert(1, packets);
        let text = render(&columns, at(21));
        let rows = "variant  Mbit/s\nsack        0.2\ndsack-r   10.15\n";
        assert_eq!(text, format!("{rows}Left out to fit 21\ncharacters, least\nimportant first:\npackets, undos.\n"));
        assert!(!render(&columns, Screen { width: None, bold: false }).contains("Left out"));
    }

    #[test]
    fn heads_and_text_fold_before_columns_are_left_out() {
        let mut cuts = Column::new("window cuts (false)", 1, Align::Right);
        cuts.cells = vec!["9".to_owned()];
        let mut about = Column::wrapping("about", 0, 8);
        about.cells = vec!["one two three unforgettable".to_owned()];
        let wide = "window cuts (false)  about\n                  9  one two three unforgettable\n";
        assert_eq!(render(&[cuts.clone(), about.clone()], Screen { width: None, bold: false }), wide);
        let narrow =
            " window\n   cuts\n(false)  about\n      9  one two\n         three\n         unforget\n         table\n";
        assert_eq!(render(&[cuts, about], at(17)), narrow);
    }

    #[test]
    fn rows_become_blocks_if_not_even_their_names_fit() {
        let headings = [(1, "next:".to_owned())];
        let text = "variant: sack\nMbit/s: 0.2\n\nnext:\nvariant:\n  dsack-r\nMbit/s: 10.15\n";
        assert_eq!(render_grouped(&columns()[..2], &headings, at(14)), text);
    }

    #[test]
    fn descriptions_continue_on_the_next_line() {
        let items =
            [("a".to_owned(), "one two three four five six seven".to_owned()), ("bcd".to_owned(), "8".to_owned())];
        assert_eq!(definitions(&items, 30), "a    one two three four five\n     six seven\nbcd  8\n");
        assert_eq!(definitions(&items, 27), "a\n    one two three four five\n    six seven\nbcd\n    8\n");
    }

    #[test]
    fn text_wraps_at_words() {
        assert_eq!(wrap("one two three", 8, 2), "one two\n  three");
        assert_eq!(wrap("wait 10 ms, not 5", 8, 0), "wait\n10 ms,\nnot 5");
    }
}
