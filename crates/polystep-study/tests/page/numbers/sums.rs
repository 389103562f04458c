//! Sums over tables: errors, sure answers, recursive proofs; out-of-distribution cells; and the paper's numbers held against each other.

use super::*;

impl Numbers {
    /// The evaluations of a table's own models, each once.
    fn evaluations(&self, table: &str) -> Vec<&Evaluation> {
        let names: BTreeSet<String> = self
            .table(table)
            .needs(Recipe::Fast, 1)
            .into_iter()
            .filter(|(_, need)| !need.endpoint)
            .map(|(_, need)| need.experiment.name())
            .collect();
        names.iter().filter(|name| self.records.get(name).is_some()).map(|name| self.home_of(name)).collect()
    }

    pub fn errors(&self) -> Vec<Value> {
        let row = |table: &&str| {
            let greedy: Vec<_> = self.evaluations(table).iter().filter_map(|e| e.greedy.as_ref()).collect();
            let of = |kind| greedy.iter().filter_map(|g| g.errors.of_kind(kind)).map(|k| k.rate.count).sum::<u64>();
            let [fac, mul, sum] = [StepKind::Facstep, StepKind::Mulstep, StepKind::Sumstep].map(of);
            let wrong: u64 = greedy.iter().map(|g| g.errors.wrong_steps).sum();
            assert_eq!(fac + mul + sum, wrong, "{table}");
            let steps = greedy.iter().map(|g| g.stepwise.exact.of).sum();
            let malformed = greedy.iter().map(|g| g.malformed.count).sum::<u64>();
            let mul_share = format!("{:.0}", 100.0 * mul as f64 / wrong as f64);
            json!({
                "table": table, "steps": whole(steps), "wrong": whole(wrong), "fac": fac, "mul": mul, "sum": sum,
                "malformed": malformed, "mul_share": mul_share,
            })
        };
        PLAIN.iter().map(row).collect()
    }

    pub fn sure(&self) -> Value {
        let (mut sure, mut wrong) = (0, 0);
        for evaluation in PLAIN.iter().flat_map(|table| self.evaluations(table)) {
            let columns = evaluation.beam.as_ref().unwrap().calibration.as_ref().unwrap().sure;
            let precision = columns.precision.unwrap();
            assert_eq!(columns.sure_rate.unwrap().count, precision.of);
            sure += precision.of;
            wrong += precision.of - precision.count;
        }
        json!({ "sure": whole(sure), "wrong": wrong })
    }

    pub fn alone(&self) -> Value {
        let all = PLAIN.iter().flat_map(|table| self.evaluations(table)).filter_map(|e| e.recursive.as_ref());
        let (mut proofs, mut exact, mut end) = (0, 0, 0);
        for recursive in all {
            proofs += recursive.recursive_exact.of;
            exact += recursive.recursive_exact.count;
            end += recursive.recursive_end.count;
        }
        json!({ "proofs": whole(proofs), "exact": whole(exact), "recovered": end - exact })
    }

    pub fn ood(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        for table in ["OODcoeff", "OODterm", "OOD2var"] {
            for row in &self.table(table).rows {
                let [train, test] = ["train", "test"].map(|of| {
                    let [config, vars] = ["config", "vars"].map(|key| row.text(&format!("{of}_{key}")).unwrap());
                    if table == "OOD2var" { format!("{config}, {vars}") } else { config.to_owned() }
                });
                if train == test {
                    continue;
                }
                let need = &row.needs(Recipe::Fast, 1)[0];
                let evaluation = self.record(&need.experiment.name()).evaluation(&need.set).unwrap();
                let greedy = evaluation.greedy.as_ref().unwrap();
                let (full, step) = (greedy.full_proof, greedy.stepwise.exact.percent);
                let [paper, paper_step] = ["full_proof_acc", "stepwise_acc"].map(|column| row.text(column).unwrap());
                rows.push(json!({
                    "table": table, "train": train, "test": test, "full": one(full.exact.percent),
                    "ci": format!("{:.1} to {:.1}", full.exact.lo, full.exact.hi),
                    "paper": paper, "step": one(step), "paper_step": paper_step,
                    "below": full.exact.percent < paper.parse().unwrap(),
                    "symbolic": full.symbolic.percent - full.exact.percent,
                }));
            }
        }
        rows
    }

    /// How many of these cells are below the paper's, and by how much the paper's test for equal value would lift one of them at most.
    pub fn ood_below(&self) -> (usize, String) {
        let cells = self.ood();
        let below: Vec<_> = cells.iter().filter(|cell| cell["below"] == true).collect();
        let gain = below.iter().map(|cell| cell["symbolic"].as_f64().unwrap()).fold(0.0, f64::max);
        (below.len(), one(gain))
    }

    /// Models of two variables: tested with one variable, and with two.
    pub fn two_to_one(&self) -> Value {
        let (mut gain, mut ours) = (0, Vec::new());
        for config in KEYS {
            let of = |vars| {
                let keys = format!("train_vars=2,test_vars={vars},train_config={config}");
                self.value("OOD2var", &keys, "full_proof_acc")
            };
            gain += usize::from(of(1) > of(2));
            let run = format!("{config}-2-coarse-prefix");
            let [one, two] = [1, 2].map(|vars| full(self.evaluation(&run, config, vars)).percent);
            ours.push((one > two, two > one));
        }
        let paired = Paired::count(ours);
        json!({ "n": KEYS.len(), "paper_gain": gain, "ours_lose": paired.second_only, "p": p_is(paired.p_value()) })
    }

    pub fn misprints(&self) -> Value {
        let steps = |full: f64, step: f64| one((100.0 - full) / (100.0 - step));
        let ood = |config: &str, column| {
            self.value("OOD2var", &format!("train_vars=2,test_vars=1,train_config={config}"), column)
        };
        let pair = |config: &str| [ood(config, "full_proof_acc"), ood(config, "stepwise_acc")];
        let [full, step] = pair("no_backtrack");
        let same =
            |row: &&PaperRow| row.value("full_proof_acc") == Some(full) && row.value("stepwise_acc") == Some(step);
        let twins: Vec<_> = self.table("annotate1var").rows.iter().filter(same).collect();
        assert_eq!(twins.len(), 1);
        let twin = ["config", "granularity"].map(|key| twins[0].text(key).unwrap()).join(", ");
        let [degree_full, degree_step] = pair("medium_degree");

        let mut rows = BTreeMap::new();
        for table in self.tables.iter().filter(|table| table.header.contains(&"beam5_acc")) {
            for row in &table.rows {
                let keys: Vec<_> = row.keys().map(|(key, text)| (key.to_string(), text)).collect();
                rows.entry(keys)
                    .or_insert(["stepwise_acc", "top1_acc_beam5", "beam5_acc"].map(|c| row.value(c).unwrap()));
            }
        }
        let impossible = rows.values().filter(|[_, top1, any]| any < top1).count();
        assert_eq!(impossible, 1, "the only such row");
        let beam_gap = rows.values().filter(|[step, top1, _]| step - top1 > 5.0).count();

        let colide = |vars: &str, config: &str| {
            let row = self
                .table("colide")
                .rows
                .iter()
                .find(|r| r.text("vars") == Some(vars) && r.text("config") == Some(config));
            ["equation_size_estimate", "endpoint_size_estimate"].map(|column| row.unwrap().value(column).unwrap())
        };
        let ratio = |[equations, endpoints]: [f64; 2]| equations / endpoints;
        let spaces = KEYS.iter().flat_map(|config| ["1", "2"].map(|vars| (vars, *config)));
        let others: Vec<f64> =
            spaces.filter(|s| *s != ("2", "medium_terms")).map(|(v, c)| ratio(colide(v, c))).collect();
        let odd = colide("2", "medium_terms");
        let is_odd =
            |row: &&polystep_study::tables::ViewRow| row.keys.iter().map(|(_, text)| *text).eq(["2", "medium_terms"]);
        let ours = self.views["colide"].rows.iter().find(is_odd).unwrap().cells[1].ours.unwrap();

        let c2 =
            |column| self.value("curriculum-var1coarse", "config=medium_degree,notation=prefix,curriculum=C2", column);
        let recall = c2("sure_rate") * c2("precision") / c2("top1_acc_beam5");
        let terms =
            self.table("curriculum-var1coarse").rows.iter().filter(|row| row.text("config") == Some("medium_terms"));
        let terms: Vec<f64> = terms.map(|row| row.value("full_proof_acc").unwrap()).collect();
        let plain = self.table("var1coarsefull").rows.iter().filter(|row| row.text("config") == Some("medium_terms"));
        let least_plain = plain.map(|row| row.value("full_proof_acc").unwrap()).fold(f64::MAX, f64::min);
        let [terms_lo, terms_hi] =
            [terms.iter().copied().fold(f64::MAX, f64::min), terms.iter().copied().fold(0.0, f64::max)];
        assert!(terms_hi < least_plain, "below every plain run");
        json!({
            "ood_full": full, "ood_step": step, "twin": twin, "ood_steps": steps(full, step), "degree_steps": steps(degree_full, degree_step),
            "beam_rows": rows.len(), "beam_gap": beam_gap,
            "colide": format!("{:.0}", odd[1] / 1e6), "ratio": one(ratio(odd)), "colide_ours": format!("{:.0}", ours / 1e6),
            "ratio_lo": one(others.iter().copied().fold(f64::MAX, f64::min)), "ratio_hi": one(others.iter().copied().fold(0.0, f64::max)),
            "recall": format!("{recall:.2}"), "terms_lo": one(terms_lo), "terms_hi": one(terms_hi),
        })
    }
}
