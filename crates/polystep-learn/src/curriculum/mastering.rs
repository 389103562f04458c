//! The Mastering-Rate algorithm. It takes the history of each task's accuracy, and says how many examples of the task come next.

use super::{CurriculumTable, Graph};
use polystep_core::Stream;
use serde::{Deserialize, Serialize};

/// What is known of one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskState {
    /// The last `k` points (step, accuracy).
    pub history: Vec<(f64, f64)>,
    /// Least mean accuracy so far.
    pub min: f64,
    /// Largest mean accuracy so far.
    pub max: f64,
    /// Slope of the accuracy over the last points.
    pub progress: f64,
}

impl TaskState {
    fn new() -> Self {
        TaskState { history: Vec::new(), min: 0.0, max: 1.0, progress: 0.0 }
    }

    fn mean(&self) -> f64 {
        let n = self.history.len();
        if n == 0 { 0.0 } else { self.history.iter().map(|h| h.1).sum::<f64>() / n as f64 }
    }

    fn update(&mut self, step: f64, accuracy: f64, k: usize) {
        self.history.push((step, accuracy));
        if self.history.len() > k {
            self.history.remove(0);
        }
        if self.history.len() == k {
            let mean = self.mean();
            self.min = self.min.min(mean);
            self.max = self.max.max(mean);
        }
        if self.history.len() >= 2 {
            self.progress = slope(&self.history);
        }
    }

    /// Whether it can be the result of exams.
    pub fn is_possible(&self) -> bool {
        let share = |x: f64| (0.0..=1.0).contains(&x);
        let history = self.history.iter().all(|&(step, accuracy)| step >= 0.0 && step.is_finite() && share(accuracy));
        history && share(self.min) && share(self.max) && self.progress.is_finite()
    }

    /// M: where the mean of the last accuracies lies between the least and the largest mean so far, from 0 to 1.
    pub fn mastering_rate(&self) -> f64 {
        if self.max <= self.min {
            return 0.0;
        }
        (self.mean().clamp(self.min, self.max) - self.min) / (self.max - self.min)
    }
}

/// Least-squares slope of y over x.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0 / n, s.1 + p.1 / n));
    let (xy, xx) = points.iter().fold((0.0, 0.0), |s, p| (s.0 + (p.0 - x) * (p.1 - y), s.1 + (p.0 - x).powi(2)));
    if xx == 0.0 { 0.0 } else { xy / xx }
}

/// The state of a curriculum: all that a checkpoint needs of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mastering {
    /// One per task of the graph.
    pub tasks: Vec<TaskState>,
}

impl Mastering {
    /// Nothing learned yet.
    pub fn new(graph: &Graph) -> Self {
        Mastering { tasks: graph.names().iter().map(|_| TaskState::new()).collect() }
    }

    /// Takes note of every task's accuracy at a step.
    pub fn update(&mut self, step: u64, accuracies: &[f64], settings: &CurriculumTable) {
        for (task, &accuracy) in self.tasks.iter_mut().zip(accuracies) {
            task.update(step as f64, accuracy, settings.k);
        }
    }

    /// Mastering rates, one per task.
    pub fn rates(&self) -> Vec<f64> {
        self.tasks.iter().map(TaskState::mastering_rate).collect()
    }

    /// Attention after redistribution.
    pub fn attention(&self, graph: &Graph, settings: &CurriculumTable) -> Vec<f64> {
        let largest = self.tasks.iter().map(|t| t.progress.abs()).fold(0.0, f64::max);
        let progress: Vec<f64> =
            self.tasks.iter().map(|t| if largest > 0.0 { t.progress.abs() / largest } else { 0.0 }).collect();
        attention(graph, &self.rates(), &progress, settings)
    }

    /// The share of each task in the next examples, by the gAmax converter. The stream breaks ties.
    pub fn distribution(&self, graph: &Graph, settings: &CurriculumTable, ties: &mut Stream) -> Vec<f64> {
        let attention = self.attention(graph, settings);
        let best = attention.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let tied: Vec<usize> = (0..attention.len()).filter(|&t| attention[t] == best).collect();
        let chosen = tied[ties.below(tied.len() as u64) as usize];
        let even = settings.eps / attention.len() as f64;
        (0..attention.len()).map(|t| even + if t == chosen { 1.0 - settings.eps } else { 0.0 }).collect()
    }
}

fn attention(graph: &Graph, rates: &[f64], progress: &[f64], settings: &CurriculumTable) -> Vec<f64> {
    let mut a: Vec<f64> = (0..graph.names().len())
        .map(|task| {
            let open = graph.ancestors(task).into_iter().map(|t| rates[t]).fold(1.0, f64::min);
            // The mastering rate of the least mastered successor: 1 if all are mastered. Without successors it is 0.
            let next = graph.successors(task).map(|t| rates[t]).reduce(f64::min).unwrap_or(0.0);
            let wish = (1.0 - settings.gamma) * progress[task] + settings.gamma * (1.0 - rates[task]);
            open.powf(settings.p) * wish * (1.0 - next)
        })
        .collect();
    for task in graph.topological().into_iter().rev() {
        let back = settings.to_predecessors * a[task];
        give(&mut a, back, &graph.predecessors(task).collect::<Vec<_>>());
        a[task] -= back;
        let on = settings.to_successors * a[task];
        give(&mut a, on, &graph.successors(task).collect::<Vec<_>>());
        a[task] -= on;
    }
    a
}

fn give(a: &mut [f64], mass: f64, to: &[usize]) {
    for &task in to {
        a[task] += mass / to.len() as f64;
    }
}

/// Divides `total` examples by a distribution into whole numbers. What is left goes to the largest remainders; of equal ones, to
/// the first task.
pub fn shares(distribution: &[f64], total: usize) -> Vec<usize> {
    let exact: Vec<f64> = distribution.iter().map(|p| p * total as f64).collect();
    // A little is added, so that 0.925·10 240 = 9471.999… does not become 9471.
    let mut counts: Vec<usize> = exact.iter().map(|x| (x + 1e-9).floor() as usize).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    let remainder = |t: usize| exact[t] - counts[t] as f64;
    order.sort_by(|&a, &b| remainder(b).total_cmp(&remainder(a)).then(a.cmp(&b)));
    let missing = total.saturating_sub(counts.iter().sum());
    for &task in order.iter().cycle().take(missing) {
        counts[task] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_core::{Purpose, Streams};

    /// The check values for C with tasks (add, mul3, mixed), after redistribution.
    #[test]
    fn attention_of_c() {
        let c = Graph::named("C").unwrap();
        for (rates, progress, want) in [
            ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.38, 0.01, 0.01]),
            ([0.9, 0.3, 0.1], [0.2, 1.0, 0.1], [0.164429, 0.313335, 0.020868]),
            ([1.0, 1.0, 0.5], [0.0, 0.0, 1.0], [0.0684, 0.0588, 0.5748]),
        ] {
            let got = attention(&c, &rates, &progress, &CurriculumTable::default());
            for (g, w) in got.iter().zip(want) {
                assert!((g - w).abs() < 1e-6, "{got:?}, not {want:?}");
            }
        }
    }

    #[test]
    fn mastering_is_relative_to_what_was_seen() {
        let mut task = TaskState::new();
        assert_eq!(task.mastering_rate(), 0.0);
        for step in 0..5 {
            task.update(f64::from(step), 0.4, 10);
        }
        // Fewer than k points: the mean between 0 and 1.
        assert!((task.mastering_rate() - 0.4).abs() < 1e-12);
        assert_eq!(task.progress, 0.0);
        for step in 5..20 {
            task.update(f64::from(step), 0.4 + 0.02 * f64::from(step - 4), 10);
        }
        assert_eq!(task.history.len(), 10);
        assert!((task.progress - 0.02).abs() < 1e-12);
    }

    #[test]
    fn the_largest_attention_takes_almost_all() {
        let graph = Graph::named("C2").unwrap();
        let state = Mastering::new(&graph);
        let mut ties = Streams::new(1, Purpose::Curriculum, "").at(0);
        let shares = state.distribution(&graph, &CurriculumTable::default(), &mut ties);
        assert!((shares[0] - 0.925).abs() < 1e-12 && (shares[3] - 0.025).abs() < 1e-12);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn shares_are_whole_and_add_up() {
        assert_eq!(shares(&[0.925, 0.025, 0.025, 0.025], 10), [10, 0, 0, 0]);
        assert_eq!(shares(&[0.925, 0.025, 0.025, 0.025], 2560), [2368, 64, 64, 64]);
        assert_eq!(shares(&[1.0 / 3.0; 3], 10), [4, 3, 3]);
        assert_eq!(shares(&[0.5, 0.3, 0.2], 7), [4, 2, 1]);
        // 11.999… is 12 and has no remainder: what is missing goes to the halves.
        let even = 0.3 / 3.0;
        assert_eq!(shares(&[even + 0.7, even, even], 15), [12, 2, 1]);
    }
}
