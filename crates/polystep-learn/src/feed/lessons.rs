//! Batches as a curriculum wants them. Each task has examples to learn from (lessons) and others to be examined on (exams). A
//! round takes as many lessons of each task as it needs. When it is over the model is examined, and the next round is planned.
//!
//! Examples that are too long for the model are in neither: they can be neither learned nor mastered.

use polystep_core::{Purpose, Task};
use polystep_engine::{Batch, Limits};

use super::course::LESSON_PROOFS;
use super::cut::ReadExample;
use super::{
    Counts, Course, EvalSet, EvalStep, ExampleReader, Feed, Moment, Position, Proofs, Syllabus, fits, push_example,
};
use crate::LearnError;
use polystep_record::{CurriculumLine, LogLine, Scores, TaskLine};

/// Proofs in a block of exam examples. Part of what a seed means: never to be changed.
const EXAM_PROOFS: u64 = 1024;

/// A curriculum and its data.
#[derive(Clone, Debug)]
pub struct Curriculum {
    /// What does not change while it is followed.
    pub syllabus: Syllabus,
    lessons: Vec<Proofs>,
    exams: Vec<Proofs>,
}

impl Curriculum {
    /// The curriculum of a target. `tasks` are in the order of the graph's names. The target's guard holds for all of them.
    pub fn new(syllabus: Syllabus, target: &Proofs, tasks: &[Task]) -> Self {
        let inside = syllabus.settings.inside;
        let proofs =
            |task: &Task, purpose, proofs| target.of(task).for_purpose(purpose).with_blocks_of(proofs).inside(inside);
        Curriculum {
            syllabus,
            lessons: tasks.iter().map(|t| proofs(t, Purpose::Train, LESSON_PROOFS)).collect(),
            exams: tasks.iter().map(|t| proofs(t, Purpose::Curriculum, EXAM_PROOFS)).collect(),
        }
    }
}

/// The feed of a run with a curriculum.
pub struct Lessons {
    syllabus: Syllabus,
    course: Course,
    /// The task of each example of the round.
    order: Vec<usize>,
    lessons: Vec<ExampleReader>,
    exams: Vec<ExampleReader>,
    limits: Limits,
    batch: Batch,
    counts: Counts,
}

impl Lessons {
    /// Starts at a place of the course. `counts` says what was drawn before it. Each reader has a thread that works ahead.
    pub fn start(curriculum: &Curriculum, limits: Limits, course: Course, counts: Counts) -> Result<Self, LearnError> {
        let Curriculum { syllabus, lessons, exams } = curriculum;
        let readers = |proofs: &[Proofs], places: &[Position]| -> Result<Vec<ExampleReader>, LearnError> {
            let tasks = proofs.iter().zip(syllabus.graph.names()).zip(places);
            tasks.map(|((proofs, name), &at)| ExampleReader::start(format!("the task {name}"), proofs, at, 1)).collect()
        };
        Ok(Lessons {
            order: syllabus.order(&course),
            lessons: readers(lessons, &course.lessons)?,
            exams: readers(exams, &course.exams)?,
            syllabus: syllabus.clone(),
            course,
            limits,
            batch: Batch::default(),
            counts,
        })
    }
}

impl Feed for Lessons {
    /// The next examples of the round. A batch ends with its round.
    fn next_unless(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<&Batch>, LearnError> {
        let before = (self.course.clone(), self.counts);
        self.batch.clear();
        while let Some(&task) = self.order.get(self.course.used) {
            let reader = &mut self.lessons[task];
            let Some(ReadExample { src, tgt, .. }) = reader.example(give_up)? else {
                (self.course, self.counts) = before;
                return Ok(None);
            };
            if !fits(&self.batch, &self.limits, src, tgt) {
                break;
            }
            push_example(&mut self.batch, src, tgt);
            self.counts += reader.advance();
            self.course.lessons[task] = reader.position;
            self.course.seen[task] += 1;
            self.course.used += 1;
        }
        Ok(Some(&self.batch))
    }

    /// A curriculum has no single position. Its place is given by its course.
    fn position(&self) -> Position {
        Position::default()
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn course(&self) -> Option<&Course> {
        Some(&self.course)
    }

    /// At the end of a round: the next examples of every task, each under its task's name.
    fn exam(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<EvalSet>, LearnError> {
        if self.course.used < self.order.len() {
            return Ok(None);
        }
        let mut steps = Vec::with_capacity(TaskLine::EXAM * self.exams.len());
        for (reader, name) in self.exams.iter_mut().zip(self.syllabus.graph.names()) {
            for _ in 0..TaskLine::EXAM {
                let kind = name.clone();
                let Some(ReadExample { src, tgt, .. }) = reader.example(give_up)? else { return Ok(None) };
                steps.push(EvalStep { proof: steps.len(), kind, src: src.to_vec(), tgt: tgt.to_vec() });
                reader.advance();
            }
        }
        self.course.exams = self.exams.iter().map(|reader| reader.position).collect();
        Ok(Some(EvalSet { proofs: steps.len(), steps }))
    }

    fn graded(&mut self, at: Moment, scores: &Scores) -> Result<Option<LogLine>, LearnError> {
        let Moment { step, examples, seconds } = at;
        let names = self.syllabus.graph.names();
        let accuracies: Vec<f64> =
            names.iter().map(|task| scores.by_kind.get(task).map_or(0.0, |share| share.share())).collect();
        self.syllabus.graded(&mut self.course, step, &accuracies);
        self.order = self.syllabus.order(&self.course);
        let (rates, attention) = (self.course.mastering.rates(), self.syllabus.attention(&self.course));
        let line = |(i, task): (usize, &String)| TaskLine {
            task: task.clone(),
            after: self.syllabus.graph.predecessors(i).map(|before| names[before].clone()).collect(),
            accuracy: accuracies[i],
            mastering: rates[i],
            progress: self.course.mastering.tasks[i].progress,
            attention: attention[i],
            share: self.course.shares[i],
            examples: self.course.seen[i],
        };
        let tasks = names.iter().enumerate().map(line).collect();
        Ok(Some(LogLine::Curriculum(CurriculumLine { step, examples, tasks, seconds })))
    }
}

#[cfg(test)]
mod tests {
    use polystep_core::{Space, Subtask};

    use super::*;
    use crate::curriculum::{CurriculumTable, Graph};
    use polystep_record::Proportion;

    const LIMITS: Limits = Limits { sequences: 8, src_tokens: 3000, tgt_tokens: 3000 };

    /// C2 in small_coeff with rounds of 3 batches of 8, under a model of this many positions.
    fn curriculum(longest: usize) -> Curriculum {
        let target = Task::new(Space::named("small_coeff").unwrap(), 1);
        let tasks = [Subtask::Add, Subtask::Mul2, Subtask::Mul3, Subtask::Mixed]
            .map(|t| Task { space: target.space.subtask(t), ..target.clone() });
        let settings = CurriculumTable { n_batches: 3, ..CurriculumTable::default() };
        let syllabus = Syllabus::new(Graph::named("C2").unwrap(), settings, 8, 3);
        let mut curriculum = Curriculum::new(syllabus, &Proofs::new(&target, 3, longest).unwrap(), &tasks);
        // Small, so that the rows cross the borders of their blocks.
        for row in curriculum.lessons.iter_mut().chain(&mut curriculum.exams) {
            *row = row.clone().with_blocks_of(20);
        }
        curriculum
    }

    fn start(curriculum: &Curriculum, course: Course, counts: Counts) -> Lessons {
        Lessons::start(curriculum, LIMITS, course, counts).unwrap()
    }

    /// Scores of a model that knows more of every task in each round.
    fn scores(round: u64) -> Scores {
        let share = |right: u64| Proportion::counted(right.min(100), 100);
        let by_kind = [("add", 9), ("mul2", 4), ("mul3", 3), ("mixed", 1)];
        Scores {
            full_proof: share(0),
            stepwise: share(0),
            by_kind: by_kind.map(|(task, speed)| (task.to_owned(), share(speed * round))).into(),
            loss: 1.0,
            too_long: 0,
            raw: false,
        }
    }

    /// The next batch, after an exam if one is due, and what the feed says of itself then.
    fn next(lessons: &mut Lessons) -> (Option<EvalSet>, Batch, Course, Counts) {
        let exam = lessons.exam(&|| false).unwrap();
        if exam.is_some() {
            let course = lessons.course().unwrap();
            let (round, step) = (course.round, 3 * (course.round + 1));
            let at = Moment { step, examples: lessons.course.seen.iter().sum(), seconds: 1.0 };
            lessons.graded(at, &scores(round + 1)).unwrap();
        }
        let batch = lessons.next().unwrap().clone();
        (exam, batch, lessons.course().unwrap().clone(), lessons.counts())
    }

    #[test]
    fn rounds_batches_and_exams_are_counted() {
        let curriculum = curriculum(512);
        let mut lessons = start(&curriculum, curriculum.syllabus.begin(), Counts::default());
        let mut exams = Vec::new();
        for step in 0..60u64 {
            let (exam, batch, course, counts) = next(&mut lessons);
            assert_eq!(batch.src.sequences(), 8);
            assert_eq!(exam.is_some(), step > 0 && step % 3 == 0, "step {step}");
            assert_eq!((course.round, course.seen.iter().sum::<u64>()), (step / 3, 8 * (step + 1)));
            assert!(counts.proofs.is_multiple_of(20) && counts.rejected > 0, "{counts:?}");
            exams.extend(exam);
        }
        for exam in &exams {
            for task in ["add", "mul2", "mul3", "mixed"] {
                assert_eq!(exam.steps.iter().filter(|s| s.kind == task).count(), TaskLine::EXAM);
            }
        }
        assert_ne!(exams[0], exams[1], "fresh examples in every exam");
        // Of 24 examples 22.2 to the favourite and 0.6 to each of the others, by largest remainder: [22, 1, 1, 0].
        let first = shares(&curriculum.syllabus.begin());
        assert_eq!(first, [22, 1, 1, 0]);
    }

    fn shares(course: &Course) -> Vec<usize> {
        crate::curriculum::shares(&course.shares, 24)
    }

    #[test]
    fn any_batch_of_any_round_is_a_place_to_go_on_from() {
        let curriculum = curriculum(512);
        let mut lessons = start(&curriculum, curriculum.syllabus.begin(), Counts::default());
        let all: Vec<_> = (0..40).map(|_| next(&mut lessons)).collect();
        for stop in [0, 1, 2, 3, 16, 23, 31] {
            let (_, _, course, counts) = all[stop].clone();
            // As a checkpoint has it.
            let course: Course = serde_json::from_str(&serde_json::to_string(&course).unwrap()).unwrap();
            let mut again = start(&curriculum, course, counts);
            for wanted in &all[stop + 1..stop + 8] {
                assert!(next(&mut again) == *wanted, "after {stop}");
            }
        }
    }

    #[test]
    fn a_task_without_examples_is_named() {
        let curriculum = curriculum(5);
        let error = start(&curriculum, curriculum.syllabus.begin(), Counts::default()).next().unwrap_err().to_string();
        assert!(error.contains("has no examples to learn from: its polynomials belong to"), "{error}");
    }
}
