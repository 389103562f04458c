//! `/api/models`, `/api/random` and `/api/gallery`: what there is to choose from.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use polystep_core::space::KEYS;
use polystep_core::{Notation, Polynomials, Purpose, Space, Style, Subtask, Task, Writing};
use serde::{Deserialize, Serialize};

use super::aside;
use crate::App;
use crate::body::JsonAnswer;
use crate::catalog::NamedModel;
use crate::error::Refusal;

/// A model as a list shows it.
#[derive(Serialize)]
struct ListedModel {
    name: String,
    setting: &'static str,
    granularity: String,
    notation: &'static str,
    /// The spaces it learned, its own first, with its full proofs on their test sets in percent; 0 if not measured.
    learned: Vec<LearnedSpace>,
}

#[derive(Serialize)]
struct LearnedSpace {
    space: String,
    vars: usize,
    full_proof: f64,
}

/// A space that polynomials can be drawn from.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct ListedSpace {
    space: String,
    vars: usize,
}

/// The models, and the spaces.
pub async fn models(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    let answer = aside(move || {
        let models = app.catalog.models();
        let keys = KEYS.iter().flat_map(|key| [key.to_string(), format!("{key}/{}", Subtask::Signed)]);
        let named = keys.flat_map(|key| [1, 2].map(|vars| (key.clone(), vars)));
        let learned = models.iter().flat_map(|model| &model.known.tasks).map(|t| (t.space.key.clone(), t.vars));
        let spaces: BTreeSet<ListedSpace> =
            named.chain(learned).map(|(space, vars)| ListedSpace { space, vars }).collect();
        let models: Vec<ListedModel> = models.iter().map(|model| listed(model)).collect();
        Ok(serde_json::json!({ "models": models, "spaces": spaces }))
    });
    Ok(JsonAnswer(answer.await?).into_response())
}

fn listed(model: &NamedModel) -> ListedModel {
    let Writing { setting, granularity, notation, .. } = model.home().writing;
    let learned = |task: &Task| LearnedSpace {
        space: task.space.key.clone(),
        vars: task.vars,
        full_proof: model.known.accuracy(task),
    };
    ListedModel {
        name: model.name.clone(),
        setting: setting.name(),
        granularity: granularity.to_string(),
        notation: notation.name(),
        learned: model.known.tasks.iter().map(learned).collect(),
    }
}

/// Which polynomial.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomRequest {
    space: String,
    vars: usize,
    seed: u64,
}

/// A random polynomial of a space. The same seed gives the same one.
pub async fn random(
    State(app): State<Arc<App>>,
    query: Result<Query<RandomRequest>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(RandomRequest { space, vars, seed }) =
        query.map_err(|_| Refusal::bad_request("ask with ?space=NAME&vars=N&seed=N"))?;
    let answer = aside(move || {
        let models = app.catalog.models();
        let learned =
            models.iter().flat_map(|model| &model.known.tasks).find(|t| t.space.key == space && t.vars == vars);
        let space = match learned {
            Some(task) => task.space.clone(),
            None => Space::of_key(&space).map_err(Refusal::unprocessable)?,
        };
        Space::validate_vars(vars).map_err(Refusal::unprocessable)?;
        let style = Style::default();
        let mut drawn = Polynomials::new(&space, vars, style, seed, Purpose::Train).map_err(Refusal::unprocessable)?;
        drawn.draw(0);
        let expr = Writing::default().print(&drawn.state(Notation::Infix));
        Ok(serde_json::json!({ "expr": expr, "space": space.key, "vars": vars, "seed": seed }))
    });
    Ok(JsonAnswer(answer.await?).into_response())
}

/// Real failures.
pub async fn gallery(State(app): State<Arc<App>>) -> Response {
    JsonAnswer(&app.gallery).into_response()
}
