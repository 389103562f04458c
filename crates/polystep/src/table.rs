//! Tables for people: no borders, words to the left, numbers to the right; and counted nouns.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle};

/// `1 variable`, `2 variables`
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A table whose first `words` columns are words and whose others are numbers.
pub fn table<const N: usize>(words: usize, header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    grid(words, header.map(str::to_owned).to_vec(), rows.into_iter().map(Vec::from))
}

/// The same with any number of columns. A cell may have several lines.
pub fn grid(words: usize, header: Vec<String>, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if i < words { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding(if i == 0 { (0, 1) } else { (1, 1) });
    }
    table.trim_fmt()
}
