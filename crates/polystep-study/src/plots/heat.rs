//! Two tables of trained × tested side by side, the paper's and ours. A higher number has a deeper colour, but never one so deep
//! that the text on it is hard to read.

use crate::chart::{Chart, Drawing, LETTER, escape, svg};

/// Percents of rows and columns; `None` where nothing was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct HeatMap {
    /// Labels of the rows.
    pub rows: Vec<String>,
    /// Labels of the columns.
    pub columns: Vec<String>,
    /// The paper's numbers, row by row.
    pub paper: Vec<Vec<Option<f64>>>,
    /// Our numbers.
    pub ours: Vec<Vec<Option<f64>>>,
}

/// The least width of a cell, and its height.
const CELL: (f64, f64) = (96.0, 40.0);
const TOP: f64 = 56.0;

/// The chart.
pub fn chart(title: &str, description: String, map: &HeatMap) -> Chart {
    let widest = |labels: &[String]| LETTER * labels.iter().map(|l| l.chars().count()).max().unwrap_or(0) as f64;
    let (left, cell) = (34.0 + widest(&map.rows), (widest(&map.columns) + 14.0).max(CELL.0));
    let wide = cell * map.columns.len() as f64;
    // A table of one's own has no numbers of the paper.
    let printed = map.paper.iter().flatten().any(Option::is_some);
    let size =
        (left + if printed { 2.0 * wide + 38.0 } else { wide + 14.0 }, TOP + CELL.1 * map.rows.len() as f64 + 16.0);
    let mut chart = Chart::new(title, description, size);
    for (i, label) in map.rows.iter().enumerate() {
        let (x, y, label) = (left - 10.0, TOP + CELL.1 * (i as f64 + 0.5) + 4.0, escape(label));
        svg!(chart.drawing, r#"<text class="label" x="{x}" y="{y:.1}" text-anchor="end">{label}</text>"#);
    }
    let ours = if printed { left + wide + 24.0 } else { left };
    for (name, cells, left) in [("the paper's", &map.paper, left), ("ours", &map.ours, ours)] {
        if name != "ours" && !printed {
            continue;
        }
        half(&mut chart.drawing, name, &map.columns, cells, (left, cell));
    }
    chart
}

/// One of the two tables.
fn half(drawing: &mut Drawing, name: &str, columns: &[String], cells: &[Vec<Option<f64>>], (left, width): (f64, f64)) {
    let height = CELL.1;
    svg!(drawing, r#"<text class="cell" x="{left:.1}" y="18">{name}</text>"#);
    for (i, label) in columns.iter().enumerate() {
        drawing.text("label", (left + width * (i as f64 + 0.5), TOP - 10.0), "middle", label);
    }
    for (i, row) in cells.iter().enumerate() {
        for (j, cell) in row.iter().enumerate() {
            let (x, y) = (left + width * j as f64, TOP + height * i as f64);
            let (w, h) = (width - 2.0, height - 2.0);
            let (look, text) = match cell {
                Some(value) => {
                    let depth = 0.04 + 0.46 * (value / 100.0).clamp(0.0, 1.0);
                    (format!(r#"class="heat" fill-opacity="{depth:.2}""#), format!("{value:.1}"))
                }
                None => (r#"class="unknown""#.to_owned(), "–".to_owned()),
            };
            svg!(drawing, r#"<rect {look} x="{x:.1}" y="{y:.1}" width="{w}" height="{h}" rx="3"/>"#);
            drawing.text("cell", (x + w / 2.0, y + h / 2.0 + 4.5), "middle", &text);
        }
    }
}
