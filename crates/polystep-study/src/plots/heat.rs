//! Two tables of trained × tested side by side, the paper's and ours, the darker the better.

use std::fmt::Write;

use crate::chart::{Chart, Drawing, escape};

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

const CELL: (f64, f64) = (96.0, 40.0);
const LABELS: f64 = 116.0;
const TOP: f64 = 56.0;

/// The chart.
pub fn chart(title: String, description: String, heat: &Heat) -> Chart {
    let wide = CELL.0 * heat.columns.len() as f64;
    let size = (LABELS + 2.0 * wide + 38.0, TOP + CELL.1 * heat.rows.len() as f64 + 16.0);
    let mut drawing = Drawing::new(&title, &description, size);
    for (i, label) in heat.rows.iter().enumerate() {
        let (x, y, label) = (LABELS - 8.0, TOP + CELL.1 * (i as f64 + 0.5) + 4.0, escape(label));
        let _ = write!(drawing.body, r#"<text class="label" x="{x}" y="{y:.1}" text-anchor="end">{label}</text>"#);
    }
    for (name, cells, left) in [("the paper's", &heat.paper, LABELS), ("ours", &heat.ours, LABELS + wide + 24.0)] {
        table(&mut drawing.body, name, &heat.columns, cells, left);
    }
    Chart { title, description, legend: Vec::new(), drawing }
}

fn table(svg: &mut String, name: &str, columns: &[String], cells: &[Vec<Option<f64>>], left: f64) {
    let (width, height) = CELL;
    let _ = write!(svg, r#"<text class="cell" x="{left:.1}" y="18">{name}</text>"#);
    for (i, label) in columns.iter().enumerate() {
        let (x, label) = (left + width * (i as f64 + 0.5), escape(label));
        let _ =
            write!(svg, r#"<text class="label" x="{x:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#, TOP - 10.0);
    }
    for (i, row) in cells.iter().enumerate() {
        for (j, cell) in row.iter().enumerate() {
            let (x, y) = (left + width * j as f64, TOP + height * i as f64);
            let depth = cell.map_or(0.0, |value| 0.06 + 0.84 * (value / 100.0).clamp(0.0, 1.0));
            let text = cell.map_or("–".to_owned(), |value| format!("{value:.1}"));
            let deep = if depth > 0.5 { " deep" } else { "" };
            let (w, h) = (width - 2.0, height - 2.0);
            let _ = write!(
                svg,
                r#"<rect class="heat" x="{x:.1}" y="{y:.1}" width="{w}" height="{h}" rx="3" fill-opacity="{depth:.2}"/><text class="cell{deep}" x="{:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
                x + w / 2.0,
                y + h / 2.0 + 4.5
            );
        }
    }
}
