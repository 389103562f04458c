//! A run's curriculum: the graph of its tasks, how well they were learned, and which share of the training each had.
//!
//! Everything is read from the log. A share counts the examples that were trained on between two lines of the log. The shares
//! that the next round was planned with are not shown, because they jump from task to task.

use serde::Serialize;

use crate::chart::{Axis, Chart, Drawing, Series, escape, plot, stack, svg, thin};
use crate::grid::Grid;
use crate::number::short;
use polystep_record::{LogLine, TaskLine};

/// A curriculum at the last look at it, and on the way there.
#[derive(Serialize)]
pub struct Curriculum {
    /// The tasks, their order and the largest of them, in words.
    pub words: String,
    /// Exams, shares, the graph.
    pub charts: [Chart; 3],
    /// A row per task, under [`HEADER`].
    pub tasks: Vec<[String; 6]>,
}

const HEADER: [&str; 6] = ["task", "after", "exam", "mastering", "examples", "of all"];

impl Curriculum {
    /// From a log; `None` if the run had no curriculum, or stopped before its first exam.
    pub fn of(log: &[LogLine]) -> Option<Curriculum> {
        let looks: Vec<(f64, &[TaskLine])> = log
            .iter()
            .filter_map(|l| match l {
                LogLine::Curriculum(line) => Some((line.examples as f64, line.tasks.as_slice())),
                _ => None,
            })
            .collect();
        let &(end, last) = looks.last()?;
        let x = || Axis::examples(end.max(1.0));
        Some(Curriculum {
            words: words(last),
            charts: [exams(&looks, last, x()), shares(&looks, last, x()), graph(last)],
            tasks: last.iter().map(|task| row(task, last)).collect(),
        })
    }

    /// The tasks as a table.
    pub fn grid(&self) -> Grid {
        let rows = self.tasks.iter().map(|task| task.to_vec()).collect();
        Grid { header: HEADER.map(str::to_owned).to_vec(), rows, words: 2 }
    }
}

fn trained_on(tasks: &[TaskLine]) -> f64 {
    tasks.iter().map(|t| t.examples as f64).sum::<f64>().max(1.0)
}

fn row(task: &TaskLine, all: &[TaskLine]) -> [String; 6] {
    [
        task.task.clone(),
        if task.after.is_empty() { "–".to_owned() } else { task.after.join(", ") },
        format!("{:.1}", 100.0 * task.accuracy),
        format!("{:.1}", 100.0 * task.mastering),
        short(task.examples as f64),
        format!("{:.1} %", 100.0 * task.examples as f64 / trained_on(all)),
    ]
}

fn words(tasks: &[TaskLine]) -> String {
    let edges: Vec<String> =
        tasks.iter().flat_map(|t| t.after.iter().map(|before| format!("{before} before {}", t.task))).collect();
    let order = if edges.is_empty() { "no order among them".to_owned() } else { edges.join(", ") };
    let most = tasks.iter().max_by_key(|t| t.examples).map_or("", |t| t.task.as_str());
    let names: Vec<&str> = tasks.iter().map(|t| t.task.as_str()).collect();
    format!("The tasks {}; {order}. Most of the training was spent on {most}.", names.join(", "))
}

/// Each task with its percent, in words.
fn percents(tasks: &[TaskLine], decimals: usize, share: impl Fn(&TaskLine) -> f64) -> String {
    let one = |t: &TaskLine| format!("{} {:.decimals$} %", t.task, 100.0 * share(t));
    tasks.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// How each task's exams went.
fn exams(looks: &[(f64, &[TaskLine])], tasks: &[TaskLine], x: Axis) -> Chart {
    let curve = |(i, task): (usize, &TaskLine)| {
        let points = looks.iter().filter_map(|(x, t)| Some((*x, 100.0 * t.get(i)?.accuracy)));
        Series::line(&task.task, points.collect())
    };
    let series = tasks.iter().enumerate().filter_map(curve).collect();
    let ends = percents(tasks, 0, |t| t.accuracy);
    let words = format!("Single steps of fresh examples, teacher-forced; at the end {ends}");
    plot("Exams", words, (x, Axis::percent("right, %")), series, false)
}

/// What the examples between two lines of the log were.
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
    let series = tasks.iter().enumerate().map(part).collect();
    let ends = percents(tasks, 1, |t| t.examples as f64 / trained_on(tasks));
    let words = format!("Shares of the training examples; over the whole run {ends}");
    stack("What was trained on", words, (x, Axis::percent("share, %")), series)
}

const BOX: (f64, f64) = (92.0, 44.0);
const GAP: (f64, f64) = (40.0, 30.0);

/// The graph from left to right: a task is to the right of all tasks that come before it. A box is filled as far as its task is
/// mastered.
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
    // Room below for the edges that pass under a box.
    let size = (far.0 + BOX.0 + 8.0, far.1 + BOX.1 + 60.0);
    let words = format!("What is learned before what; mastered {}", percents(tasks, 0, |t| t.mastering));
    let mut chart = Chart::new("Tasks", words, size);
    let edges =
        tasks.iter().enumerate().flat_map(|(to, t)| t.after.iter().filter_map(place).map(move |from| (from, to)));
    for (from, to) in edges {
        let steps = columns[to].saturating_sub(columns[from]);
        edge(&mut chart.drawing, corner(from), corner(to), steps);
    }
    for (i, task) in tasks.iter().enumerate() {
        let ((x, y), (w, h)) = (corner(i), BOX);
        let (name, percent) = (escape(&task.task), 100.0 * task.mastering);
        let (bar, filled, middle) = (y + h - 6.0, w * task.mastering.clamp(0.0, 1.0), x + w / 2.0);
        svg!(
            chart.drawing,
            r#"<g><title>{name}: {percent:.0} % mastered</title><rect class="node" x="{x:.1}" y="{y:.1}" width="{w}" height="{h}" rx="6"/><rect class="mastered" x="{x:.1}" y="{bar:.1}" width="{filled:.1}" height="6" rx="3"/>"#
        );
        chart.drawing.text("task", (middle, y + 17.0), "middle", &task.task);
        chart.drawing.text("tick", (middle, y + 33.0), "middle", &format!("{percent:.0} %"));
        svg!(chart.drawing, "</g>");
    }
    chart
}

/// An arrow between two boxes, given by their corners. One that skips columns passes under the boxes between them.
fn edge(drawing: &mut Drawing, start: (f64, f64), end: (f64, f64), steps: usize) {
    let (x0, y0, x1, y1, bend, tip) = if steps > 1 {
        let (x1, y1) = (end.0 + BOX.0 * 0.3, end.1 + BOX.1 + 5.0);
        let tip = format!("M{x1:.1} {:.1}l-4.5 8h9Z", y1 - 4.0);
        (start.0 + BOX.0 * 0.7, start.1 + BOX.1, x1, y1, 22.0 + 14.0 * steps as f64, tip)
    } else {
        let (x1, y1) = (end.0 - 5.0, end.1 + BOX.1 / 2.0);
        let tip = format!("M{:.1} {y1:.1}l-8 -4.5v9Z", x1 + 4.0);
        (start.0 + BOX.0, start.1 + BOX.1 / 2.0, x1, y1, 0.0, tip)
    };
    let (below0, below1) = (y0 + bend, y1 + bend);
    svg!(
        drawing,
        r#"<path class="edge" d="M{x0:.1} {y0:.1}C{x0:.1} {below0:.1} {x1:.1} {below1:.1} {x1:.1} {y1:.1}"/><path class="arrow" d="{tip}"/>"#
    );
}
