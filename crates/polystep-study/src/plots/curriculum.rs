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
    /// How many examples an exam has.
    pub exam: usize,
}

const HEADER: [&str; 6] = ["task", "after", "exam of 100", "mastering", "examples", "of all"];

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
            exam: TaskLine::EXAM,
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
    let words =
        format!("Of {} fresh single steps of each task, teacher-forced, at the end {ends} are right", TaskLine::EXAM);
    plot("Exams of a curriculum", words, (x, Axis::percent("right, %")), series, false)
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
    let words = format!("Shares of the {} training examples; over the whole run {ends}", short(trained_on(tasks)));
    stack("What a curriculum trains on", words, (x, Axis::percent("share, %")), series)
}

const BOX: (f64, f64) = (104.0, 44.0);
const GAP: (f64, f64) = (28.0, 34.0);
/// The least width: that of the other charts.
const WIDE: f64 = 420.0;

/// The graph from top to bottom: a task is below all tasks that come before it. A box is filled as far as its task is mastered.
fn graph(tasks: &[TaskLine]) -> Chart {
    let place = |name: &String| tasks.iter().position(|t| t.task == *name);
    let mut levels = vec![0usize; tasks.len()];
    // A path has fewer edges than there are tasks, so this many rounds reach its end.
    for _ in 0..tasks.len() {
        for (i, task) in tasks.iter().enumerate() {
            let behind = task.after.iter().filter_map(place).map(|p| levels[p] + 1).max().unwrap_or(0);
            levels[i] = behind.min(tasks.len());
        }
    }
    let (step, count) = ((BOX.0 + GAP.0, BOX.1 + GAP.1), |level| levels.iter().filter(|l| **l == level).count());
    let most = levels.iter().map(|level| count(*level)).max().unwrap_or(0);
    // Room at the side for the edges that pass a box.
    let wide = (step.0 * most as f64 + 160.0).max(WIDE);
    let corner = |i: usize| {
        let before = (0..i).filter(|&j| levels[j] == levels[i]).count();
        let row = step.0 * count(levels[i]) as f64 - GAP.0;
        ((wide - row) / 2.0 + step.0 * before as f64, 10.0 + step.1 * levels[i] as f64)
    };
    let deepest = levels.iter().copied().max().unwrap_or(0);
    let words = format!("What is learned before what; mastered {}", percents(tasks, 0, |t| t.mastering));
    let mut chart = Chart::new("Tasks", words, (wide, 20.0 + step.1 * deepest as f64 + BOX.1));
    let edges =
        tasks.iter().enumerate().flat_map(|(to, t)| t.after.iter().filter_map(place).map(move |from| (from, to)));
    for (from, to) in edges {
        let skipped = levels[to].saturating_sub(levels[from]).saturating_sub(1);
        edge(&mut chart.drawing, corner(from), corner(to), skipped);
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

/// An arrow between two boxes, given by their corners. One that skips levels passes beside the boxes between them.
fn edge(drawing: &mut Drawing, start: (f64, f64), end: (f64, f64), skipped: usize) {
    let (path, tip) = if skipped > 0 {
        let (x0, y0, x1, y1) = (start.0 + BOX.0, start.1 + BOX.1 * 0.7, end.0 + BOX.0 + 5.0, end.1 + BOX.1 * 0.3);
        let far = x0.max(x1) + 24.0 + 18.0 * skipped as f64;
        (
            format!("M{x0:.1} {y0:.1}C{far:.1} {y0:.1} {far:.1} {y1:.1} {x1:.1} {y1:.1}"),
            format!("M{:.1} {y1:.1}l8 -4.5v9Z", x1 - 4.0),
        )
    } else {
        let (x0, y0, x1, y1) = (start.0 + BOX.0 / 2.0, start.1 + BOX.1, end.0 + BOX.0 / 2.0, end.1 - 5.0);
        (format!("M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}"), format!("M{x1:.1} {:.1}l-4.5 -8h9Z", y1 + 4.0))
    };
    svg!(drawing, r#"<path class="edge" d="{path}"/><path class="arrow" d="{tip}"/>"#);
}
