//! `[curriculum]` of a run's TOML: which tasks are learned before which, and the constants of the Mastering-Rate algorithm.

use polystep_core::{Space, Subtask};
use serde::{Deserialize, Serialize};

use super::Graph;
use crate::ConfigError;

/// `[curriculum]`: a named curriculum of the paper, or the user's own tasks and edges. The default constants are those of the
/// algorithm's authors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CurriculumTable {
    /// `C`, `C2` or `C4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Sub-tasks of `data.config` (`add`, `mul2`, `mul3`, `scoeff`, `mixed`, `signed`), configurations of the paper, or spaces of
    /// one's own: a file (`easy.toml`) or a key of `[spaces]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// `["add", "mul2"]`: add is learned before mul2.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<(String, String)>,
    /// Whether the steps of a sub-task are written as the same steps inside the target: a product alone keeps its parentheses. If
    /// not, it ends with a bare polynomial, as a proof by itself does, and the model learns two ways to write one product.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// How steeply the mastering of ancestors opens a task.
    pub p: f64,
    /// Weight of "not yet mastered" against learning progress.
    pub gamma: f64,
    /// Share that is spread evenly over all tasks.
    pub eps: f64,
    /// How many of the last accuracies count.
    pub k: usize,
    /// Batches in a round, between two exams.
    pub n_batches: usize,
    /// Share of attention given to predecessors.
    pub to_predecessors: f64,
    /// Share of what remains given to successors.
    pub to_successors: f64,
}

impl Default for CurriculumTable {
    fn default() -> Self {
        CurriculumTable {
            name: None,
            tasks: Vec::new(),
            edges: Vec::new(),
            inside: false,
            p: 6.0,
            gamma: 0.5,
            eps: 0.1,
            k: 10,
            n_batches: 10,
            to_predecessors: 0.2,
            to_successors: 0.05,
        }
    }
}

impl CurriculumTable {
    /// The graph and the space of each of its tasks: sub-tasks of a target, and other spaces by their keys.
    pub fn resolve(
        &self,
        target: &Space,
        other: impl Fn(&str) -> Option<Space>,
    ) -> Result<(Graph, Vec<Space>), ConfigError> {
        let own = !(self.tasks.is_empty() && self.edges.is_empty());
        let graph = match &self.name {
            Some(_) if own => {
                return Err(ConfigError::new(
                    "curriculum.name excludes curriculum.tasks and edges: give one or the other",
                ));
            }
            Some(name) => Graph::named(name)
                .ok_or_else(|| ConfigError::new(format!("curriculum.name = \"{name}\" is unknown: C, C2 or C4")))?,
            None if own => Graph::new(&self.tasks, &self.edges).map_err(|e| ConfigError::new(e.to_string()))?,
            None => {
                return Err(ConfigError::new(
                    "[curriculum] needs a name (C, C2 or C4), or tasks and edges of your own",
                ));
            }
        };
        let space = |task: &String| match task.parse() {
            Ok(subtask) => Ok(target.subtask(subtask)),
            Err(_) => other(task).ok_or_else(|| self.unknown(task)),
        };
        let spaces = graph.names().iter().map(space).collect::<Result<_, _>>()?;
        self.check()?;
        Ok((graph, spaces))
    }

    fn unknown(&self, task: &str) -> ConfigError {
        let edge = self.edges.iter().find(|(a, b)| a == task || b == task);
        let edge = edge.map_or_else(String::new, |(a, b)| format!(" (edge {a} -> {b})"));
        let known = Subtask::ALL.map(Subtask::name).join(", ");
        ConfigError::new(format!("curriculum.tasks: unknown task `{task}`{edge}; the tasks are {known}, and spaces"))
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |wrong: bool, why: String| if wrong { Err(ConfigError::new(why)) } else { Ok(()) };
        let shares = [
            ("gamma", self.gamma),
            ("eps", self.eps),
            ("to_predecessors", self.to_predecessors),
            ("to_successors", self.to_successors),
        ];
        for (key, value) in shares {
            refuse(!(0.0..=1.0).contains(&value), format!("curriculum.{key} must be between 0 and 1"))?;
        }
        refuse(!(self.p >= 0.0 && self.p.is_finite()), "curriculum.p must not be negative".into())?;
        refuse(self.k < 2, "curriculum.k must be at least 2: a slope needs two points".into())?;
        refuse(!(1..=10_000).contains(&self.n_batches), "curriculum.n_batches must be between 1 and 10000".into())
    }
}
