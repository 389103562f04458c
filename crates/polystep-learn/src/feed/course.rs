//! Where a run stands in its curriculum. A curriculum has rounds of examples. The exam after each round decides how the next
//! one is divided among the tasks.
//!
//! Of a round only two things are stored: the share of each task, and how many examples are used. Which task the i-th example
//! belongs to is drawn from (seed, shuffle, round). So a round that was interrupted goes on as if nothing had happened.

use polystep_core::{Purpose, Streams};
use serde::{Deserialize, Serialize};

use super::Position;
use crate::curriculum::{CurriculumTable, Graph, Mastering, TaskState, shares};

/// Proofs in a block of lessons. Part of what a seed means: never to be changed.
pub(super) const LESSON_PROOFS: u64 = 4096;

/// What does not change while a curriculum is followed.
#[derive(Clone, Debug)]
pub struct Syllabus {
    /// The tasks, and which is learned before which.
    pub graph: Graph,
    pub(super) settings: CurriculumTable,
    /// Examples in a round.
    round: usize,
    ties: Streams,
    order: Streams,
}

/// Where a run stands in its curriculum: part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// What is known of each task.
    pub mastering: Mastering,
    /// The round, from 0.
    pub round: u64,
    /// The share of each task in it.
    pub shares: Vec<f64>,
    /// How many of its examples are used.
    pub used: usize,
    /// Examples of each task that were trained on, this round's included.
    pub seen: Vec<u64>,
    /// The next training example of each task.
    pub lessons: Vec<Position>,
    /// The next exam example of each task.
    pub exams: Vec<Position>,
    /// The step of the last exam.
    pub examined: u64,
}

impl Course {
    /// How many proofs were drawn for its lessons; none if the number is too large.
    pub(crate) fn proofs(&self) -> Option<u64> {
        self.lessons.iter().try_fold(0u64, |sum, place| sum.checked_add(place.proofs(LESSON_PROOFS)?))
    }

    /// Whether a run can be at this place after this many steps and examples.
    pub(crate) fn is_possible(&self, step: u64, examples: u64) -> bool {
        let tasks = self.mastering.tasks.len();
        let lengths = [self.shares.len(), self.seen.len(), self.lessons.len(), self.exams.len()];
        let shares = self.shares.iter().all(|share| (0.0..=1.0).contains(share));
        let seen = self.seen.iter().try_fold(0u64, |sum, &n| sum.checked_add(n));
        lengths == [tasks; 4]
            && shares
            && (self.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9
            && seen == Some(examples)
            && self.round <= step
            && self.examined <= step
            && self.used as u64 <= examples
            && self.exams.iter().all(|place| place.proofs(LESSON_PROOFS).is_some())
            && self.mastering.tasks.iter().all(TaskState::is_possible)
    }
}

impl Syllabus {
    /// A graph to be followed with batches of `batch` examples.
    pub fn new(graph: Graph, settings: CurriculumTable, batch: usize, seed: u64) -> Self {
        Syllabus {
            round: settings.n_batches * batch,
            ties: Streams::new(seed, Purpose::Curriculum, "ties"),
            order: Streams::new(seed, Purpose::Shuffle, "curriculum"),
            graph,
            settings,
        }
    }

    /// Before the first example.
    pub fn begin(&self) -> Course {
        let mastering = Mastering::new(&self.graph);
        let n = self.graph.names().len();
        Course {
            shares: self.shares(&mastering, 0),
            mastering,
            round: 0,
            used: 0,
            seen: vec![0; n],
            lessons: vec![Position::default(); n],
            exams: vec![Position::default(); n],
            examined: 0,
        }
    }

    /// The task of each example of the round.
    pub fn order(&self, course: &Course) -> Vec<usize> {
        let counts = shares(&course.shares, self.round);
        let mut order: Vec<usize> = counts.iter().enumerate().flat_map(|(task, &n)| vec![task; n]).collect();
        self.order.at(course.round).shuffle(&mut order);
        order
    }

    /// Whether a course can belong to this curriculum.
    pub fn accepts(&self, course: &Course) -> bool {
        course.seen.len() == self.graph.names().len() && course.used <= self.round
    }

    /// Takes note of an exam after a step, and begins the next round.
    pub fn graded(&self, course: &mut Course, step: u64, accuracies: &[f64]) {
        course.mastering.update(step, accuracies, &self.settings);
        course.round += 1;
        course.used = 0;
        course.shares = self.shares(&course.mastering, course.round);
        course.examined = step;
    }

    /// How much attention each task has.
    pub fn attention(&self, course: &Course) -> Vec<f64> {
        course.mastering.attention(&self.graph, &self.settings)
    }

    fn shares(&self, mastering: &Mastering, round: u64) -> Vec<f64> {
        mastering.distribution(&self.graph, &self.settings, &mut self.ties.at(round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syllabus(seed: u64) -> Syllabus {
        Syllabus::new(Graph::named("C2").unwrap(), CurriculumTable::default(), 256, seed)
    }

    fn count(order: &[usize]) -> [usize; 4] {
        std::array::from_fn(|task| order.iter().filter(|&&t| t == task).count())
    }

    #[test]
    fn a_round_has_ten_batches_by_the_shares() {
        let syllabus = syllabus(1);
        let course = syllabus.begin();
        let order = syllabus.order(&course);
        assert_eq!(count(&order), [2368, 64, 64, 64]);
        assert_ne!(order[..2368], [0; 2368], "it is shuffled");
        assert_ne!(order, self::syllabus(2).order(&syllabus.begin()), "by the seed");
        let later = Course { round: 1, ..course.clone() };
        assert_ne!(order, syllabus.order(&later), "and by the round");
        assert_eq!(order, syllabus.order(&course));
    }

    /// A model that masters task after task is led through the graph in its order.
    #[test]
    fn the_course_follows_what_is_mastered() {
        let syllabus = syllabus(1);
        let mut course = syllabus.begin();
        let mut favourites = Vec::new();
        for round in 0..55u64 {
            let favourite = (0..4).max_by(|&a, &b| course.shares[a].total_cmp(&course.shares[b])).unwrap();
            if favourites.last() != Some(&favourite) {
                favourites.push(favourite);
            }
            let level = |task: u64| ((round as f64 - 15.0 * task as f64) / 15.0).clamp(0.0, 1.0);
            let accuracies: Vec<f64> = (0..4).map(level).collect();
            syllabus.graded(&mut course, 10 * (round + 1), &accuracies);
        }
        assert_eq!((favourites[0], *favourites.last().unwrap()), (0, 3), "{favourites:?}");
        let first = |task| favourites.iter().position(|&t| t == task);
        assert!(first(1) < first(2) && first(2) < first(3), "{favourites:?}");
        assert_eq!((course.round, course.examined), (55, 550));
    }
}
