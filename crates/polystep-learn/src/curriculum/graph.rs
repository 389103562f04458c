//! An ordered curriculum: tasks and "learn this before that".

use std::collections::BTreeSet;

/// A graph that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// An edge names a task that is not in the list.
    #[error("the edge {0} -> {1} names a task that is not in curriculum.tasks")]
    UnknownTask(String, String),
    /// A task is in the list twice.
    #[error("the task {0} stands twice in curriculum.tasks")]
    Twice(String),
    /// An edge closes a circle.
    #[error("the edge {0} -> {1} closes a circle: {1} is to be learned before {0} already")]
    Circle(String, String),
    /// No tasks.
    #[error("curriculum.tasks is empty")]
    Empty,
}

/// Tasks by number, with direct predecessors and successors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    names: Vec<String>,
    edges: Vec<(usize, usize)>,
}

impl Graph {
    /// A graph of named tasks; an edge (a, b) means a before b. An edge given twice counts once.
    pub fn new(tasks: &[String], edges: &[(String, String)]) -> Result<Graph, GraphError> {
        let mut graph = Graph { names: Vec::new(), edges: Vec::new() };
        for task in tasks {
            if graph.names.contains(task) {
                return Err(GraphError::Twice(task.clone()));
            }
            graph.names.push(task.clone());
        }
        if tasks.is_empty() {
            return Err(GraphError::Empty);
        }
        for (a, b) in edges {
            let find = |name: &String| graph.names.iter().position(|n| n == name);
            let (Some(from), Some(to)) = (find(a), find(b)) else {
                return Err(GraphError::UnknownTask(a.clone(), b.clone()));
            };
            if from == to || graph.ancestors(from).contains(&to) {
                return Err(GraphError::Circle(a.clone(), b.clone()));
            }
            if !graph.edges.contains(&(from, to)) {
                graph.edges.push((from, to));
            }
        }
        Ok(graph)
    }

    /// One of the paper's curricula: C, C2 or C4.
    pub fn named(name: &str) -> Option<Graph> {
        let (tasks, edges): (&[&str], &[(&str, &str)]) = match name {
            "C" => (&["add", "mul3", "mixed"], &[("add", "mul3"), ("mul3", "mixed"), ("add", "mixed")]),
            "C2" => (
                &["add", "mul2", "mul3", "mixed"],
                &[("add", "mul2"), ("mul2", "mul3"), ("mul3", "mixed"), ("add", "mixed")],
            ),
            "C4" => (
                &["add", "mul2", "mul3", "scoeff", "mixed"],
                &[("add", "mul2"), ("mul2", "mul3"), ("mul3", "scoeff"), ("add", "scoeff"), ("scoeff", "mixed")],
            ),
            _ => return None,
        };
        let tasks: Vec<String> = tasks.iter().map(|t| t.to_string()).collect();
        let edges: Vec<(String, String)> = edges.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        Graph::new(&tasks, &edges).ok()
    }

    /// The tasks' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Tasks directly before one.
    pub fn predecessors(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        self.edges.iter().filter(move |e| e.1 == task).map(|e| e.0)
    }

    /// Tasks directly after one.
    pub fn successors(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        self.edges.iter().filter(move |e| e.0 == task).map(|e| e.1)
    }

    /// Every task before one, at any distance.
    pub fn ancestors(&self, task: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open: Vec<usize> = self.predecessors(task).collect();
        while let Some(next) = open.pop() {
            if found.insert(next) {
                open.extend(self.predecessors(next));
            }
        }
        found
    }

    /// The tasks in an order in which each comes after all of its predecessors. If several may come next, the first in the list does.
    pub fn topological(&self) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::with_capacity(self.names.len());
        while order.len() < self.names.len() {
            let next = (0..self.names.len())
                .find(|t| !order.contains(t) && self.predecessors(*t).all(|p| order.contains(&p)))
                .expect("a graph has no circles");
            order.push(next);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(tasks: &[&str], edges: &[(&str, &str)]) -> Result<Graph, GraphError> {
        let tasks: Vec<String> = tasks.iter().map(|t| t.to_string()).collect();
        let edges: Vec<(String, String)> = edges.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        Graph::new(&tasks, &edges)
    }

    #[test]
    fn the_papers_curricula() {
        let c4 = Graph::named("C4").unwrap();
        assert_eq!(c4.topological(), [0, 1, 2, 3, 4]);
        assert_eq!(c4.ancestors(4), BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(c4.predecessors(3).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(Graph::named("C3"), None);
    }

    #[test]
    fn a_circle_is_refused_with_its_edge() {
        let wrong = graph(&["a", "b", "c"], &[("a", "b"), ("b", "c"), ("c", "a")]).unwrap_err();
        assert_eq!(wrong, GraphError::Circle("c".into(), "a".into()));
        assert!(wrong.to_string().contains("c -> a"));
        let wrong = graph(&["a"], &[("a", "mul9")]).unwrap_err();
        assert_eq!(wrong.to_string(), "the edge a -> mul9 names a task that is not in curriculum.tasks");
        assert!(graph(&["a", "a"], &[]).is_err() && graph(&[], &[]).is_err());
    }
}
