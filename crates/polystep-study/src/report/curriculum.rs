//! A run's curriculum: the graph of its tasks, how they were learned, and what the training was spent on.
//!
//! Everything is read from the log. Shares are those of the examples that were trained on between two lines of it, not the
//! shares that the next round was planned with: these jump from task to task.

use std::fmt::Write;

use serde::Serialize;

use crate::chart::{Axis, Chart, Drawing, Key, Series, Sign, escape, line, plot, short, stack, thin};
use polystep_record::{LogLine, TaskLine};

/// The section.
#[derive(Serialize)]
pub struct CurriculumView {
    words: String,
    /// Exams, shares, the graph.
    pub charts: [Chart; 3],
    tasks: Vec<TaskRow>,
}

/// A task at the end.
#[derive(Serialize)]
struct TaskRow {
    task: String,
    after: String,
    accuracy: String,
    mastering: String,
    examples: String,
    share: String,
}

impl CurriculumView {
    /// From a log; nothing if the run had no curriculum, or has not come to its first exam.
    pub fn of(log: &[LogLine]) -> Option<CurriculumView> {
        let looks: Vec<(f64, &[TaskLine])> = log
            .iter()
            .filter_map(|l| match l {
                LogLine::Curriculum(line) => Some((line.examples as f64, line.tasks.as_slice())),
                _ => None,
            })
            .collect();
        let &(end, last) = looks.last()?;
        let x = || Axis::linear("training examples", (0.0, end.max(1.0)), "");
        Some(CurriculumView {
            words: words(last),
            charts: [exams(&looks, last, x()), shares(&looks, last, x()), graph(last)],
            tasks: last.iter().map(|task| row(task, last)).collect(),
        })
    }

    /// The same in words and numbers.
    pub fn markdown(&self, run: &str) -> String {
        let mut out = format!("\nCurriculum of {run}. {}\n\n", self.words);
        out += "| task | after | exam | mastering | examples | of all |\n|---|---|---:|---:|---:|---:|\n";
        for TaskRow { task, after, accuracy, mastering, examples, share } in &self.tasks {
            let _ = writeln!(out, "| {task} | {after} | {accuracy} | {mastering} | {examples} | {share} |");
        }
        out
    }
}

fn trained_on(tasks: &[TaskLine]) -> f64 {
    tasks.iter().map(|t| t.examples as f64).sum::<f64>().max(1.0)
}

fn row(task: &TaskLine, all: &[TaskLine]) -> TaskRow {
    TaskRow {
        task: task.task.clone(),
        after: if task.after.is_empty() { "–".to_owned() } else { task.after.join(", ") },
        accuracy: format!("{:.1}", 100.0 * task.accuracy),
        mastering: format!("{:.1}", 100.0 * task.mastering),
        examples: short(task.examples as f64),
        share: format!("{:.1} %", 100.0 * task.examples as f64 / trained_on(all)),
    }
}

fn words(tasks: &[TaskLine]) -> String {
    let edges: Vec<String> =
        tasks.iter().flat_map(|t| t.after.iter().map(|before| format!("{before} before {}", t.task))).collect();
    let order = if edges.is_empty() { "no order among them".to_owned() } else { edges.join(", ") };
    let most = tasks.iter().max_by_key(|t| t.examples).map_or("", |t| t.task.as_str());
    let names: Vec<&str> = tasks.iter().map(|t| t.task.as_str()).collect();
    format!("The tasks {}; {order}. Most of the training was spent on {most}.", names.join(", "))
}

/// How each task's exams went.
fn exams(looks: &[(f64, &[TaskLine])], tasks: &[TaskLine], x: Axis) -> Chart {
    let curve = |(i, task): (usize, &TaskLine)| {
        line(&task.task, looks.iter().filter_map(|(x, t)| Some((*x, 100.0 * t.get(i)?.accuracy))).collect())
    };
    let series = tasks.iter().enumerate().filter_map(curve).collect();
    let ends: Vec<String> = tasks.iter().map(|t| format!("{} {:.0} %", t.task, 100.0 * t.accuracy)).collect();
    let words = format!("Single steps of fresh examples, teacher-forced; at the end {}", ends.join(", "));
    plot("Exams", words, x, Axis::linear("right, %", (0.0, 100.0), ""), series, false)
}

/// What the examples between two lines were.
fn shares(looks: &[(f64, &[TaskLine])], tasks: &[TaskLine], x: Axis) -> Chart {
    let part = |(i, task): (usize, &TaskLine)| {
        let mut before = (0.0, 0.0);
        let mut points = Vec::with_capacity(looks.len());
        for (_, t) in looks {
            let now = (t.get(i).map_or(0.0, |t| t.examples as f64), trained_on(t));
            points.push((now.1, 100.0 * (now.0 - before.0) / (now.1 - before.1).max(1.0)));
            before = now;
        }
        let mut points = thin(points);
        // The first window begins with the first example.
        points.insert(0, (0.0, points.first().map_or(0.0, |p| p.1)));
        Series { name: task.task.clone(), points, dots: false, steps: false }
    };
    let series: Vec<Series> = tasks.iter().enumerate().map(part).collect();
    let ends: Vec<String> =
        tasks.iter().map(|t| format!("{} {:.1} %", t.task, 100.0 * t.examples as f64 / trained_on(tasks))).collect();
    let title = "What was trained on";
    let description = format!("Shares of the training examples; over the whole run {}", ends.join(", "));
    let drawing = stack(title, &description, &x, &Axis::linear("share, %", (0.0, 100.0), ""), &series);
    let keys = series.into_iter().enumerate();
    let legend = keys.map(|(i, part)| Key { name: part.name, sign: Sign::Band(i) }).collect();
    Chart { title: title.to_owned(), description, legend, drawing }
}

const BOX: (f64, f64) = (92.0, 44.0);
const GAP: (f64, f64) = (40.0, 30.0);

/// The graph from left to right: a task stands behind all that come before it. A box is filled as far as its task is mastered.
fn graph(tasks: &[TaskLine]) -> Chart {
    let place = |name: &String| tasks.iter().position(|t| t.task == *name);
    let mut columns = vec![0usize; tasks.len()];
    // A path has fewer edges than there are tasks, so this many rounds reach its end.
    for _ in 0..tasks.len() {
        for (i, task) in tasks.iter().enumerate() {
            let behind = task.after.iter().filter_map(place).map(|p| columns[p] + 1).max().unwrap_or(0);
            columns[i] = behind.min(tasks.len());
        }
    }
    let rows: Vec<usize> = (0..tasks.len()).map(|i| (0..i).filter(|&j| columns[j] == columns[i]).count()).collect();
    let corner = |i: usize| (8.0 + columns[i] as f64 * (BOX.0 + GAP.0), 10.0 + rows[i] as f64 * (BOX.1 + GAP.1));
    let far = (0..tasks.len()).map(corner).fold((0.0, 0.0), |m: (f64, f64), c| (m.0.max(c.0), m.1.max(c.1)));
    // Room below for the edges that pass a box.
    let (width, height) = (far.0 + BOX.0 + 8.0, far.1 + BOX.1 + 60.0);
    let ends: Vec<String> = tasks.iter().map(|t| format!("{} {:.0} %", t.task, 100.0 * t.mastering)).collect();
    let (title, description) = ("Tasks", format!("What is learned before what; mastered {}", ends.join(", ")));
    let mut drawing = Drawing::new(title, &description, (width, height));
    let svg = &mut drawing.body;
    for (to, task) in tasks.iter().enumerate() {
        for from in task.after.iter().filter_map(place) {
            let (start, end) = (corner(from), corner(to));
            let steps = columns[to].saturating_sub(columns[from]);
            let (x0, y0, x1, y1, bend) = if steps > 1 {
                // Under the boxes between them.
                let deep = 22.0 + 14.0 * steps as f64;
                (start.0 + BOX.0 * 0.7, start.1 + BOX.1, end.0 + BOX.0 * 0.3, end.1 + BOX.1 + 5.0, deep)
            } else {
                (start.0 + BOX.0, start.1 + BOX.1 / 2.0, end.0 - 5.0, end.1 + BOX.1 / 2.0, 0.0)
            };
            let tip = if steps > 1 {
                format!("M{x1:.1} {:.1}l-4.5 8h9Z", y1 - 4.0)
            } else {
                format!("M{:.1} {y1:.1}l-8 -4.5v9Z", x1 + 4.0)
            };
            let _ = write!(
                svg,
                r#"<path class="edge" d="M{x0:.1} {y0:.1}C{x0:.1} {:.1} {x1:.1} {:.1} {x1:.1} {y1:.1}"/><path class="arrow" d="{tip}"/>"#,
                y0 + bend,
                y1 + bend
            );
        }
    }
    for (i, task) in tasks.iter().enumerate() {
        let ((x, y), (w, h)) = (corner(i), BOX);
        let (name, percent) = (escape(&task.task), 100.0 * task.mastering);
        let filled = w * task.mastering.clamp(0.0, 1.0);
        let middle = x + w / 2.0;
        let _ = write!(
            svg,
            r#"<g><title>{name}: {percent:.0} % mastered</title><rect class="node" x="{x:.1}" y="{y:.1}" width="{w}" height="{h}" rx="6"/><rect class="mastered" x="{x:.1}" y="{:.1}" width="{filled:.1}" height="6" rx="3"/><text class="task" x="{middle:.1}" y="{:.1}" text-anchor="middle">{name}</text><text class="tick" x="{middle:.1}" y="{:.1}" text-anchor="middle">{percent:.0} %</text></g>"#,
            y + h - 6.0,
            y + 17.0,
            y + 33.0,
        );
    }
    Chart { title: title.to_owned(), description, legend: Vec::new(), drawing }
}
