//! Tables on the terminal: no borders, words aligned to the left, numbers to the right.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle};
use polystep_study::grid::Grid;
pub use polystep_study::number::counted;

/// A table whose first `words` columns are words and whose others are numbers.
pub fn table<const N: usize>(words: usize, header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    grid(&Grid { header: header.map(str::to_owned).to_vec(), rows: rows.into_iter().map(Vec::from).collect(), words })
}

/// A table with any number of columns. A cell may have several lines.
pub fn grid(grid: &Grid) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(&grid.header).add_rows(&grid.rows);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if i < grid.words { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding(if i == 0 { (0, 1) } else { (1, 1) });
    }
    table.trim_fmt()
}
