//! Two tables of trained × tested side by side, the paper's and ours, the deeper the better; never so deep that ink is hard to read on it.

use std::fmt::Write;

use crate::chart::{Chart, Drawing, LETTER, escape};

/// Percents of rows and columns; what was not measured is empty.
#[derive(Clone, PartialEq, Debug)]
pub struct Heat {
    /// Labels of the rows.
    pub rows: Vec<String>,
    /// Labels of the columns.
    pub columns: Vec<String>,
    /// The paper's, row by row.
    pub paper: Vec<Vec<Option<f64>>>,
    /// Ours.
    pub ours: Vec<Vec<Option<f64>>>,
}

/// The least width of a cell, and its height.
const CELL: (f64, f64) = (96.0, 40.0);
const TOP: f64 = 56.0;

/// The chart.
pub fn chart(title: String, description: String, heat: &Heat) -> Chart {
    let widest = |labels: &[String]| LETTER * labels.iter().map(|l| l.chars().count()).max().unwrap_or(0) as f64;
    let (left, cell) = (34.0 + widest(&heat.rows), (widest(&heat.columns) + 14.0).max(CELL.0));
    let wide = cell * heat.columns.len() as f64;
    let size = (left + 2.0 * wide + 38.0, TOP + CELL.1 * heat.rows.len() as f64 + 16.0);
    let mut drawing = Drawing::new(&title, &description, size);
    for (i, label) in heat.rows.iter().enumerate() {
        let (x, y, label) = (left - 10.0, TOP + CELL.1 * (i as f64 + 0.5) + 4.0, escape(label));
        let _ = write!(drawing.body, r#"<text class="label" x="{x}" y="{y:.1}" text-anchor="end">{label}</text>"#);
    }
    for (name, cells, left) in [("the paper's", &heat.paper, left), ("ours", &heat.ours, left + wide + 24.0)] {
        table(&mut drawing.body, name, &heat.columns, cells, (left, cell));
    }
    Chart { title, description, legend: Vec::new(), drawing }
}

fn table(svg: &mut String, name: &str, columns: &[String], cells: &[Vec<Option<f64>>], (left, width): (f64, f64)) {
    let height = CELL.1;
    let _ = write!(svg, r#"<text class="cell" x="{left:.1}" y="18">{name}</text>"#);
    for (i, label) in columns.iter().enumerate() {
        let (x, label) = (left + width * (i as f64 + 0.5), escape(label));
        let _ =
            write!(svg, r#"<text class="label" x="{x:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#, TOP - 10.0);
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
            let _ = write!(svg, r#"<rect {look} x="{x:.1}" y="{y:.1}" width="{w}" height="{h}" rx="3"/>"#);
            let (x, y) = (x + w / 2.0, y + h / 2.0 + 4.5);
            let _ = write!(svg, r#"<text class="cell" x="{x:.1}" y="{y:.1}" text-anchor="middle">{text}</text>"#);
        }
    }
}
