use polystep_core::StepClass;

use super::*;
use crate::model::Size;

fn read(text: &str) -> Result<RunConfig, ConfigError> {
    RunConfig::from_toml(text, &[])
}

fn with(text: &str, set: &[(&str, &str)]) -> Result<RunConfig, ConfigError> {
    let set: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    RunConfig::from_toml(text, &set)
}

fn refusal(text: &str) -> String {
    read(text).unwrap_err().message
}

#[test]
fn an_empty_file_is_the_fast_recipe() {
    assert_eq!(read("").unwrap(), RunConfig::of_recipe(Recipe::Fast));
}

#[test]
fn a_resolved_config_reads_back_as_itself() {
    let texts = [
        "",
        "[train]\nrecipe = \"paper\"\nminutes = 2.5\n[data]\nconfig = \"large_coeff\"\ngranularity = \"fac=term\"",
        "[model]\nsize = \"L\"\nd = 512\n[data]\nsetting = \"endpoint\"\nseed = 77",
        "[curriculum]\nname = \"C4\"\np = 4",
        "[curriculum]\ntasks = [\"add\", \"mixed\"]\nedges = [[\"add\", \"mixed\"]]\n[space]\nbase = \"large_coeff\"",
        "[space]\nkey = \"mine\"\nbase = \"large_coeff\"\nmax = { products = 4, factors = 2 }\n[data]\nvars = 2",
    ];
    for text in texts {
        let config = read(text).unwrap();
        assert_eq!(read(&config.to_toml()).unwrap(), config, "{}", config.to_toml());
    }
}

/// Every experiment in `configs/` resolves, and its head names the command that runs it.
#[test]
fn every_config_that_is_shipped_can_be_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs");
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let command = if text.contains("\n[grid]") {
            crate::sweep::Sweep::from_toml(&text).map(|_| "sweep")
        } else {
            read(&text).map(|_| "train")
        };
        let command = command.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(text.contains(&format!("#   polystep {command} configs/{name}")), "{name}");
        found += 1;
    }
    assert!(found >= 12, "{found}");
}

#[test]
fn the_recipe_supplies_what_is_not_given() {
    let config = read("[train]\nrecipe = \"paper\"\nclip = 2\n[data]\nconfig = \"large_coeff\"\n").unwrap();
    assert_eq!((config.train.clip, config.train.lr, config.train.batch), (2.0, 1e-4, 32));
    assert_eq!(config.model.norm, polystep_engine::NormOrder::Post);
    assert!(config.train.examples.unwrap() > 1_000_000);
    let config = read("[model]\nsize = \"l\"\nd = 512\n").unwrap();
    assert_eq!((config.model.layers, config.model.heads, config.model.ffn), (6, 8, 2048));
}

#[test]
fn a_budget_of_ones_own_replaces_the_recipes() {
    let config = read("[train]\nminutes = 3\n").unwrap();
    assert_eq!((config.train.examples, config.train.minutes), (None, Some(3.0)));
    let config = with("[train]\nexamples = 500\n", &[("train.steps", "10")]).unwrap();
    assert_eq!((config.train.examples, config.train.steps), (Some(500), Some(10)));
}

#[test]
fn overrides_win_over_the_file() {
    let text = "[data]\nnotation = \"infix\"\n[model]\nlayers = 2\n";
    let config = with(text, &[("model.layers", "3"), ("data.notation", "prefix"), ("train.lr", "1e-3")]).unwrap();
    assert_eq!((config.model.layers, config.data.notation.to_string(), config.train.lr), (3, "prefix".into(), 1e-3));
    assert_eq!(with("", &[("model.size", "L")]).unwrap().model.size, Size::L);
}

#[test]
fn unknown_keys_and_wrong_types_are_refused_with_their_line() {
    let text = "[data]\nvars = 1\n[model]\nlayer = 6\n";
    let error = read(text).unwrap_err();
    assert!(error.message.starts_with("line 4: unknown field `layer`, expected one of `size`"), "{error}");
    assert_eq!(&text[error.span.unwrap()], "layer");
    assert!(refusal("[train]\nbatch = \"many\"\n").starts_with("line 2: invalid type: string \"many\""));
    assert!(refusal("[train]\nlr = 1e-3\nlr = 1e-4\n").starts_with("line 3: duplicate key"));
    assert!(refusal("[training]\n").starts_with("line 1: unknown field `training`"));
    assert!(refusal("[train]\nrecipe = \"best\"\n").contains("unknown variant `best`, expected `paper` or `fast`"));
}

#[test]
fn a_wrong_override_names_itself() {
    let refusal = |k, v| with("", &[(k, v)]).unwrap_err().message;
    assert!(refusal("model.layer", "6").starts_with("model.layer=6: unknown field `layer`"));
    let whole = "expected a whole number, at least 0";
    assert_eq!(refusal("train.batch", "x"), format!("train.batch=x: invalid type: string \"x\", {whole}"));
    assert_eq!(refusal("train.batch", "-3"), format!("train.batch=-3: invalid value: integer `-3`, {whole}"));
    let max = refusal("space.max", "{ products = \"x\", factors = 2 }");
    assert!(max.ends_with(&format!("invalid type: string \"x\", {whole}")), "{max}");
    assert_eq!(refusal("layers", "6"), "layers=6: a key is a table and a name, as in model.layers=6");
}

#[test]
fn the_arithmetic_probe_has_keys_and_a_budget_of_its_own() {
    let probe = read("[data]\nsetting = \"arithmetic\"").unwrap().data.keys(None);
    let paper = polystep_record::paper::lookup(&probe).into_iter().find(|p| p.column == "train_examples").unwrap();
    for recipe in ["paper", "fast"] {
        let config = read(&format!("[data]\nsetting = \"arithmetic\"\n[train]\nrecipe = \"{recipe}\"")).unwrap();
        assert_eq!(config.data.config, "arithmetic");
        assert_eq!(paper.text, config.train.examples.unwrap().to_string(), "{recipe}");
        assert_eq!(read(&config.to_toml()).unwrap(), config);
    }
    let add = read("[data]\nsetting = \"arithmetic\"\nconfig = \"add4\"").unwrap();
    assert_eq!(add.task().unwrap().space.key, "add4");
    let refused = refusal("[data]\nsetting = \"arithmetic\"\nconfig = \"small_coeff\"");
    assert!(refused.contains("the arithmetic probe has arithmetic, add4, add9, mul4, mul9"), "{refused}");
    assert!(refusal("[data]\nsetting = \"arithmetic\"\n[space]\nkey = \"mine\"").contains("no polynomials"));
    assert!(refusal("[data]\nconfig = \"add4\"").contains("unknown configuration `add4`"));
}

#[test]
fn what_cannot_be_run_is_one_sentence() {
    assert_eq!(refusal("[model]\nheads = 3\n"), "model.heads = 3 does not divide model.d = 256");
    assert!(refusal("[data]\nconfig = \"huge\"\n").contains("the configurations are small_coeff"));
    assert!(refusal("[data]\nsetting = \"annotated\"\nnotation = \"prefix\"\n").contains("infix only"));
    assert!(refusal("[data]\nvars = 9\n").contains("1 to 8"));
    assert_eq!(refusal("[model]\nlayers = 1000000000\n"), "model.layers = 1000000000 must be between 1 and 128");
    let endless = refusal("[model]\nmax_positions = 9223372036854775807\n");
    assert!(endless.ends_with("must be between 8 and 65536"), "{endless}");
    assert!(refusal("[model]\nd = 9223372036854775807\n").ends_with("must be between 1 and 1024"));
    assert_eq!(refusal("[model]\ninit_std = nan\n"), "model.init_std must be positive");
    assert_eq!(refusal("[train]\nlr = 0\n"), "train.lr must be positive");
    // In fp32 these are 0, infinite and 1.
    assert_eq!(refusal("[train]\neps = 1e-60\n"), "train.eps must be positive");
    assert_eq!(refusal("[train]\nlr = 1e39\n"), "train.lr must be positive");
    assert!(refusal("[train]\nbeta2 = 0.99999999999\n").contains("below 1"));
    assert_eq!(refusal("[train]\nsteps = 0\n"), "a budget of 0 trains nothing");
}

#[test]
fn spaces_beside_the_own_one() {
    let read = |also: &str| RunConfig::from_toml(&format!("[data]\nconfig = \"small_coeff\"\nalso = {also}\n"), &[]);
    let tasks = read(r#"["large_coeff:2", "small_coeff:2"]"#).unwrap().tasks().unwrap();
    let named: Vec<_> = tasks.iter().map(|t| (t.space.key.as_str(), t.vars)).collect();
    assert_eq!(named, [("small_coeff", 1), ("large_coeff", 2), ("small_coeff", 2)]);
    for (also, why) in [
        (r#"["large_coeff"]"#, "line 3: \"large_coeff\": write a configuration"),
        (r#"["small_coeff:1"]"#, "data.also, \"small_coeff:1\": is learned already"),
        (r#"["huge_coeff:1"]"#, "huge_coeff"),
        (r#"["large_coeff:9"]"#, "data.also, \"large_coeff:9\""),
    ] {
        let error = read(also).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_mix_of_classes_and_spaces() {
    let text = "[data]\nalso = [\"small_coeff:1\", { space = \"no_backtrack:2\", weight = 2.5 }]\n\
                [data.mix]\nfacstep = 0.04\nmul3_multi3_sums5 = 3\n";
    let config = read(text).unwrap();
    assert_eq!(config.task_weights(), [1.0, 1.0, 2.5]);
    let weights = config.class_weights();
    let of = |class| weights.of(class);
    let all = [of(StepClass::Facstep), of(StepClass::Mul3Multi3Sums5), of(StepClass::Sumstep)];
    assert_eq!((all, weights.is_natural()), ([0.04, 3.0, 1.0], false));
    assert_eq!(read(&config.to_toml()).unwrap(), config);
    assert!(config.to_toml().contains("\"small_coeff:1\""), "{}", config.to_toml());
    assert!(read("").unwrap().class_weights().is_natural());
    let focus = read("[train.focus]\nevery = 1000\n").unwrap();
    assert_eq!((focus.train.focus.unwrap().every, focus.train.focus.unwrap().floor), (1000, 0.04));
    assert_eq!(read(&focus.to_toml()).unwrap(), focus);
    assert_eq!(with("", &[("data.mix.sumstep", "0.5")]).unwrap().class_weights().of(StepClass::Sumstep), 0.5);
    for (text, why) in [
        ("[data.mix]\nmulstep = 1\n", "line 2: unknown variant `mulstep`, expected one of `facstep`"),
        ("[data.mix]\nsumstep = -1\n", "data.mix.sumstep must be 0, or between 0.001 and 1000"),
        ("[data]\nalso = [{ space = \"large_coeff:1\", weight = 0 }]\n", "its weight must be between 0.001 and 1000"),
        ("[data]\nalso = [{ space = \"large_coeff:1\", share = 2 }]\n", "line 2: unknown field `share`"),
        ("[data]\nfile = \"x.jsonl\"\n[data.mix]\nsumstep = 1\n", "leave out data.file"),
        ("[curriculum]\nname = \"C\"\n[data.mix]\nsumstep = 1\n", "leave out [data.mix]"),
        ("[curriculum]\nname = \"C\"\n[train.focus]\n", "leave out [data.mix] and [train.focus]"),
        ("[train.focus]\nfloor = 0\n", "train.focus.floor must be between 0.001 and 1"),
        ("[train.focus]\nevry = 3\n", "line 2: unknown field `evry`, expected one of `every`"),
    ] {
        let found = refusal(text);
        assert!(found.contains(why), "{found}");
    }
}

#[test]
fn a_curriculum_by_its_name_or_by_its_graph() {
    assert!(!read("").unwrap().to_toml().contains("curriculum"));
    let config = with("[data]\nconfig = \"large_coeff\"\nvars = 2", &[("curriculum.name", "C4")]).unwrap();
    let (graph, settings, tasks) = config.curriculum().unwrap().unwrap();
    assert_eq!((graph.names().len(), settings.p, settings.n_batches), (5, 6.0, 10));
    let keys: Vec<&str> = tasks.iter().map(|t| t.space.key.as_str()).collect();
    let all = ["large_coeff/add", "large_coeff/mul2", "large_coeff/mul3", "large_coeff/scoeff", "large_coeff"];
    assert_eq!(keys, all);
    assert!(tasks.iter().all(|t| t.vars == 2));
    // `mixed` need not be in it.
    let own = "[curriculum]\ntasks = [\"add\", \"mul3\"]\nedges = [[\"add\", \"mul3\"]]\nn_batches = 5";
    let (graph, settings, _) = read(own).unwrap().curriculum().unwrap().unwrap();
    assert_eq!((graph.predecessors(1).collect::<Vec<_>>(), settings.n_batches), (vec![0], 5));
}

#[test]
fn a_curriculum_that_cannot_be_followed_is_refused_with_its_edge() {
    let own = |tasks: &str, edges: &str| refusal(&format!("[curriculum]\ntasks = {tasks}\nedges = {edges}"));
    assert_eq!(
        own(r#"["add", "mul2", "mixed"]"#, r#"[["add", "mul2"], ["mul2", "mixed"], ["mixed", "add"]]"#),
        "the edge mixed -> add closes a circle: add is to be learned before mixed already"
    );
    assert_eq!(
        own(r#"["add", "mixed"]"#, r#"[["add", "mul2"]]"#),
        "the edge add -> mul2 names a task that is not in curriculum.tasks"
    );
    assert_eq!(
        own(r#"["add", "mul9"]"#, r#"[["add", "mul9"]]"#),
        "curriculum.tasks: unknown task `mul9` (edge add -> mul9); the tasks are add, mul2, mul3, scoeff, mixed, signed, and spaces"
    );
    assert!(own(r#"["mul9"]"#, "[]").starts_with("curriculum.tasks: unknown task `mul9`; the tasks"));
    assert_eq!(own(r#"["add", "add"]"#, "[]"), "the task add stands twice in curriculum.tasks");
    assert_eq!(own("[]", r#"[["add", "mixed"]]"#), "curriculum.tasks is empty");
    assert!(refusal("[curriculum]\nname = \"C2\"\ntasks = [\"add\"]").starts_with("curriculum.name excludes"));
    assert_eq!(refusal("[curriculum]\nname = \"C3\""), "curriculum.name = \"C3\" is unknown: C, C2 or C4");
    assert!(refusal("[curriculum]").starts_with("[curriculum] needs a name"));
    assert!(refusal("[curriculum]\nedge = []").starts_with("line 2: unknown field `edge`"));
    let sub_task = refusal("[curriculum]\nname = \"C\"\n[data]\nconfig = \"large_coeff/mul2\"");
    assert_eq!(sub_task, "data.config = \"large_coeff/mul2\" is a sub-task: a curriculum leads to a whole one");
    let probe = refusal("[curriculum]\nname = \"C\"\n[data]\nsetting = \"arithmetic\"");
    assert_eq!(probe, "[curriculum]: the arithmetic probe has no sub-tasks; leave it out");
    let mixture = refusal("[curriculum]\nname = \"C\"\n[data]\nalso = [\"large_coeff:1\"]");
    assert_eq!(mixture, "[curriculum] leads to one space: leave out data.also");
    for (wrong, why) in [("eps = 1.5", "between 0 and 1"), ("k = 1", "two points"), ("n_batches = 0", "between 1")] {
        assert!(refusal(&format!("[curriculum]\nname = \"C\"\n{wrong}")).contains(why), "{wrong}");
    }
}

/// A space in a file is read wherever a key may stand, and what is resolved needs the file no more.
#[test]
fn spaces_of_ones_own_stand_where_keys_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let long = file("long.toml", "[space]\nkey = \"long\"\nbase = \"large_coeff\"\nmin.products = 4\n");
    let easy = file("easy.toml", "[space]\nkey = \"easy\"\nbase = \"small_coeff\"\nmax.products = 2\n");
    let other = file("other.toml", "[space]\nkey = \"long\"\nbase = \"small_coeff\"\n");
    let text =
        format!("[data]\nconfig = \"{long}\"\nalso = [\"{easy}:2\", \"large_coeff:1\"]\nguard = [\"{long}:3\"]\n");
    let config = read(&text).unwrap();
    let keys = |tasks: Vec<Task>| tasks.iter().map(|t| format!("{}:{}", t.space.key, t.vars)).collect::<Vec<_>>();
    assert_eq!(keys(config.tasks().unwrap()), ["long:1", "easy:2", "large_coeff:1"]);
    assert_eq!(keys(config.guarded().unwrap()), ["long:3"]);
    assert_eq!(config.task().unwrap().space.products.min, 4);
    assert_eq!(read(&config.to_toml()).unwrap(), config);
    assert!(!config.to_toml().contains("long.toml"));

    let curriculum = format!(
        "[curriculum]\ntasks = [\"{easy}\", \"small_coeff\", \"mixed\"]\nedges = [[\"{easy}\", \"mixed\"], [\"small_coeff\", \"mixed\"]]\n"
    );
    let config = read(&curriculum).unwrap();
    let (graph, _, tasks) = config.curriculum().unwrap().unwrap();
    assert_eq!(graph.names(), ["easy", "small_coeff", "mixed"]);
    assert_eq!(keys(tasks), ["easy:1", "small_coeff:1", "medium_coeff:1"]);
    assert_eq!(read(&config.to_toml()).unwrap(), config);

    let refused = |text: &str| read(text).unwrap_err().to_string();
    let twice = refused(&format!("[data]\nalso = [\"{long}:1\", \"{other}:1\"]\n"));
    assert!(twice.ends_with("another space of this run has the key `long`: give one of them another key"), "{twice}");
    let wrong = file("wrong.toml", "[space]\n\nmaxx = 3\n");
    let unknown = refused(&format!("[data]\nalso = [\"{wrong}:1\"]\n"));
    assert!(unknown.contains("wrong.toml, line 3: unknown field `maxx`"), "{unknown}");
    assert!(refused("[data]\nalso = [\"none.toml:1\"]\n").starts_with("cannot read none.toml"));
    assert!(refused("[spaces.small_coeff]\nmax.products = 4\n").contains("is reserved"));
}

/// A run that does not name them writes the TOML of earlier versions.
#[test]
fn levers_are_off_and_unwritten_by_default() {
    let text = RunConfig::of_recipe(Recipe::Fast).to_toml();
    for key in ["encoder_layers", "decoder_layers", "logits", "ema", "late"] {
        assert!(!text.contains(key), "{key}: {text}");
    }
    let levers =
        "[model]\ndecoder_layers = 6\n[train]\nlogits = \"fp32\"\nema = 0.999\nlate = { batch = 1024, eps = 1e-12 }\n";
    let config = read(levers).unwrap();
    assert_eq!((config.model.depth(), config.train.batches()), ([4, 6], [256, 1024]));
    assert_eq!(config.train.late.as_ref().unwrap().from, 0.67);
    assert_eq!(read(&config.to_toml()).unwrap(), config);
    assert_eq!(refusal("[train]\nlate = { from = 0.5 }\n"), "train.late changes nothing: give it batch or eps");
    assert!(refusal("[train]\nema = 1.0\n").starts_with("train.ema must be above 0 and below 1"));
    assert!(refusal("[train]\nlate = { from = 1.5, eps = 1e-9 }\n").starts_with("train.late.from is a share"));
    let curriculum = "[train]\nlate = { batch = 8 }\n[curriculum]\nname = \"C\"\n[data]\nconfig = \"small_coeff\"\n";
    assert!(refusal(curriculum).starts_with("[curriculum] divides batches of one size"));
    assert_eq!(refusal("[model]\ndecoder_layers = 0\n"), "model.decoder_layers = 0 must be between 1 and 128");
}
