//! Tables for people: aligned columns, as many as the terminal is wide.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::IsTerminal;

/// One column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: Cow<'static, str>,
    /// Lower ranks survive on narrower terminals.
    pub(crate) rank: u8,
    pub(crate) align: Align,
    pub(crate) cells: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

impl Column {
    /// At most this wide; longer cells are cut.
    pub(crate) fn cut_to(&mut self, width: usize) {
        for cell in &mut self.cells {
            if cell.chars().count() > width {
                *cell = cell.chars().take(width.saturating_sub(1)).collect::<String>().trim_end().to_owned() + "…";
            }
        }
    }

    pub(crate) fn new(title: impl Into<Cow<'static, str>>, rank: u8, align: Align) -> Column {
        Column { title: title.into(), rank, align, cells: Vec::new() }
    }

    pub(crate) fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.title.chars().count()]).max().unwrap_or(0)
    }
}

/// Spaces between columns.
const GAP: usize = 2;

/// The table, at most `width` wide: columns of the highest ranks are left out until it fits.
pub(crate) fn render(columns: &[Column], width: usize, bold_titles: bool) -> String {
    let mut kept: Vec<&Column> = columns.iter().collect();
    let total = |kept: &[&Column]| kept.iter().map(|c| c.width() + GAP).sum::<usize>().saturating_sub(GAP);
    while total(&kept) > width && kept.len() > 1 {
        let highest = kept.iter().map(|column| column.rank).max().unwrap_or(0);
        let last = kept.iter().rposition(|column| column.rank == highest).unwrap_or(0);
        kept.remove(last);
    }
    let mut text = String::new();
    let line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (column, cell) in kept.iter().zip(cells) {
            let pad = column.width() - cell.chars().count();
            match column.align {
                Align::Left => {
                    let _ = write!(line, "{cell}{:pad$}", "");
                }
                Align::Right => {
                    let _ = write!(line, "{:pad$}{cell}", "");
                }
            }
            line.push_str("  ");
        }
        line.trim_end().to_owned()
    };
    let titles = line(kept.iter().map(|column| &*column.title).collect());
    let _ = if bold_titles { writeln!(text, "\x1b[1m{titles}\x1b[0m") } else { writeln!(text, "{titles}") };
    for row in 0..kept.first().map_or(0, |column| column.cells.len()) {
        let _ = writeln!(text, "{}", line(kept.iter().map(|column| column.cells[row].as_str()).collect()));
    }
    text
}

/// Names with their descriptions beside them, which go on below each other.
pub(crate) fn definitions(items: &[(String, String)], width: usize) -> String {
    let indent = items.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + GAP;
    let mut text = String::new();
    for (name, description) in items {
        let room = width.saturating_sub(indent).max(20);
        let wrapped = wrap(description, room, 0).replace('\n', &format!("\n{:indent$}", ""));
        let _ = writeln!(text, "{name:indent$}{wrapped}");
    }
    text
}

/// Columns of the terminal, 80 if there is none.
pub(crate) fn terminal_width() -> usize {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    from_environment.or_else(measured).unwrap_or(80)
}

/// Colour is for terminals whose owner has not asked for none.
pub(crate) fn may_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Units that stay with their number.
const UNITS: [&str; 11] = ["%", "ns", "us", "ms", "s", "min", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "MB"];

fn is_unit(word: &str) -> bool {
    UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']))
}

/// `text` broken into lines of at most `width`, each after the first indented by `indent`. Numbers keep their units.
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

    #[test]
    fn columns_line_up() {
        assert_eq!(
            render(&columns(), 80, false),
            "variant  Mbit/s  undos\nsack        0.2      0\ndsack-r   10.15      7\n"
        );
    }

    #[test]
    fn narrow_terminals_lose_the_extras() {
        assert_eq!(render(&columns(), 16, false), "variant  Mbit/s\nsack        0.2\ndsack-r   10.15\n");
    }

    #[test]
    fn descriptions_go_on_below_each_other() {
        let items = [("a".to_owned(), "one two three four five".to_owned()), ("bcd".to_owned(), "six".to_owned())];
        assert_eq!(definitions(&items, 25), "a    one two three four\n     five\nbcd  six\n");
    }

    #[test]
    fn text_wraps_at_words() {
        assert_eq!(wrap("one two three", 8, 2), "one two\n  three");
        assert_eq!(wrap("wait 10 ms, not 5", 8, 0), "wait\n10 ms,\nnot 5");
    }
}
