//! Declaration files: what a person says of captures that do not say it themselves. Tables `[both]`, `[a]` and `[b]` hold
//! fields of the manifest; what a capture shows is never overridden, and saying otherwise is an error that names both. A table
//! `[price]` says what the two cost.

mod inline;

use std::path::Path;

use model::{
    Trace,
    manifest::{self, Field, Provenance},
};
use toml::{Table, Value};

use crate::Error;
use diagnosis::{
    analysis::{Analysis, sequences},
    compare::contract::rule::{Status, status},
    decide::price::Prices,
};

/// What is said of each side.
#[derive(Debug, Default)]
pub struct Declaration {
    sides: [Vec<(&'static Field, String)>; 2],
    /// Fields that are the same on both sides, whatever their value.
    same: Vec<&'static Field>,
    /// What the two cost, where that is said.
    pub prices: Option<Prices>,
    file: String,
}

impl Declaration {
    /// Reads a file; `-` is standard input.
    ///
    /// # Errors
    /// What is no declaration, with the key and the next step.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let text = match file.to_str() {
            Some("-") => input::standard_input(input::BY_HAND),
            _ => input::text(file, input::BY_HAND),
        };
        let text = text
            .map_err(|e| Error::Request(format!("cannot read '{}': {e}; name a declaration file", file.display())))?;
        Self::parse(&file.display().to_string(), &text)
    }

    fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let table: Table =
            text.parse().map_err(|e: toml::de::Error| Error::Request(format!("'{file}': {}", e.message())))?;
        let mut declared = Self { file: file.to_owned(), ..Self::default() };
        // In which order a table keeps its keys depends on how its library is built.
        let mut tables: Vec<(&String, &Value)> = table.iter().collect();
        tables.sort_by_key(|(name, _)| name.as_str() != "both");
        for (name, fields) in tables {
            let sides: &[usize] = match name.as_str() {
                "both" => &[0, 1],
                "a" => &[0],
                "b" => &[1],
                "price" => {
                    let Value::Table(table) = fields else {
                        return Err(Error::Request(format!(
                            "'{file}': 'price' is no table; write [price.a] above its fields"
                        )));
                    };
                    let prices =
                        Prices::read(table.clone()).map_err(|why| Error::Request(format!("'{file}': {why}")))?;
                    declared.prices = Some(prices);
                    continue;
                }
                _ => {
                    return Err(Error::Request(format!(
                        "'{file}': unknown table '{name}'; write [both], [a], [b] or [price]"
                    )));
                }
            };
            let Value::Table(fields) = fields else {
                return Err(Error::Request(format!("'{file}': '{name}' is no table; write [{name}] above its fields")));
            };
            let mut found = Vec::new();
            flatten(file, "", fields, &mut found)?;
            for side in sides {
                let Some(side) = declared.sides.get_mut(*side) else { continue };
                for (field, value) in &found {
                    if let Some((_, other)) = side.iter().find(|(known, _)| known.key == field.key) {
                        return Err(Error::Request(format!(
                            "'{file}': {} is said twice of one side, as '{other}' and as '{value}'; leave one of them",
                            field.key
                        )));
                    }
                    side.push((*field, value.clone()));
                }
            }
        }
        Ok(declared)
    }

    /// Where it is said.
    fn said_in(&self) -> &str {
        if self.file.is_empty() { "--declare" } else { &self.file }
    }

    /// What is said of a side, 0 or 1, by key.
    pub fn of(&self, side: usize) -> Vec<(&'static str, &str)> {
        self.sides.get(side).into_iter().flatten().map(|(field, value)| (field.key, value.as_str())).collect()
    }

    /// Whether the same is said of both sides.
    pub fn is_same_for_both(&self) -> bool {
        let [a, b] = &self.sides;
        a == b
    }

    /// Adds what is said of a side, 0 or 1, to one of its captures.
    ///
    /// # Errors
    /// A value that the capture contradicts.
    pub fn apply(&self, side: usize, trace: &mut Trace) -> Result<(), Error> {
        for (field, value) in self.sides.get(side).into_iter().flatten() {
            let shown = trace.manifest.get(field.key).filter(|entry| entry.provenance != Provenance::Declared);
            let denied = shown.filter(|e| status(field, Some(&e.value), Some(value)) == Status::Different);
            if let Some(entry) = denied {
                return Err(Error::Request(format!(
                    "'{}' declares {} = '{value}', but '{}' shows '{}'; take the line out, or name the right capture",
                    self.said_in(),
                    field.key,
                    trace.source,
                    entry.value
                )));
            }
            trace.manifest.set(field.key, value.clone(), Provenance::Declared);
        }
        self.fits_the_job(side, trace)
    }

    /// Whether the parallel sizes that were declared can be those of a job of as many ranks as the capture shows.
    fn fits_the_job(&self, side: usize, trace: &Trace) -> Result<(), Error> {
        let own = self.sides.get(side).into_iter().flatten();
        let declared: Vec<&str> = own.map(|(field, _)| field.key).filter(|key| FACTORS.contains(key)).collect();
        let world = trace.manifest.get("parallel.world_size").filter(|e| e.provenance != Provenance::Declared);
        let world = world.and_then(|_| trace.manifest.count("parallel.world_size")).filter(|world| *world > 0);
        let Some(world) = world.filter(|_| !declared.is_empty()) else { return Ok(()) };
        let known: Vec<u64> = FACTORS.iter().filter_map(|key| trace.manifest.count(key)).collect();
        let product = known.iter().try_fold(1u64, |all, n| all.checked_mul(*n)).unwrap_or(u64::MAX);
        // What nobody says of contexts that ranks share is that there are none.
        let whole = FACTORS.iter().take(3).all(|key| trace.manifest.count(key).is_some());
        if product == 0 || world % product != 0 || whole && product != world {
            return Err(Error::Request(format!(
                "'{}' declares {}, which makes {product} ranks, but '{}' shows a job of {world}; take them out, or name the right capture",
                self.said_in(),
                declared.join(", "),
                trace.source
            )));
        }
        Ok(())
    }
}

impl Declaration {
    /// Whether a length of prompts that was declared of a side, 0 or 1, can be that of a capture.
    ///
    /// # Errors
    /// One that its steps disprove.
    pub fn fits_the_prompts(&self, side: usize, trace: &Trace, analysis: &Analysis) -> Result<(), Error> {
        let own = || self.sides.get(side).into_iter().flatten().find(|(field, _)| field.key == PROMPT);
        let Some((value, length)) = own().and_then(|(_, value)| Some((value, value.parse::<u64>().ok()?))) else {
            return Ok(());
        };
        let shown = sequences::prompts(trace, analysis);
        let denied = match (shown.read, shown.keys) {
            (Some(read), _) if read > length.saturating_mul(VARY) => {
                format!("reads a prompt of {read} tokens; say how lengths vary ('{length}…{read}')")
            }
            (_, Some(keys)) if length > keys => format!("attends to at most {keys} tokens; say that or less"),
            _ => return Ok(()),
        };
        Err(Error::Request(format!(
            "'{}' declares {PROMPT} = '{value}', but '{}' {denied}, take the line out, or name the right capture",
            self.said_in(),
            trace.source
        )))
    }
}

/// Field of the length of prompts.
const PROMPT: &str = "workload.prompt_len";
/// How many times as long as the usual prompt, which one number stands for, the longest may be; own value.
const VARY: u64 = 4;

/// The sizes whose product is the number of ranks.
const FACTORS: [&str; 4] = ["parallel.tp", "parallel.pp", "parallel.dp", "parallel.cp"];

/// Fields under dotted names, however they are nested: `model.name = "x"` is a table to TOML.
fn flatten(file: &str, above: &str, table: &Table, found: &mut Vec<(&'static Field, String)>) -> Result<(), Error> {
    for (name, value) in table {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        if let Value::Table(inner) = value {
            flatten(file, &key, inner, found)?;
            continue;
        }
        let field = manifest::declarable(&key).ok_or_else(|| {
            Error::Request(format!(
                "'{file}': '{key}' is no field of the manifest; 'strato manifest show CAPTURE' lists them"
            ))
        })?;
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Integer(n) => n.to_string(),
            Value::Float(n) => n.to_string(),
            Value::Boolean(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            _ => {
                return Err(Error::Request(format!(
                    "'{file}': '{key}' is neither text nor a number; write it in quotes"
                )));
            }
        };
        if text.is_empty() {
            return Err(Error::Request(format!("'{file}': '{key}' is empty; say what it was, or take the line out")));
        }
        found.push((field, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use diagnosis::analysis::script::Script;
    use model::{Category, TraceBuilder, TraceSink};

    use super::*;

    #[test]
    fn a_judgement_that_no_contract_asks_for_may_be_declared() {
        let declared = Declaration::parse("f", "[a]\nplatform.community = \"fair: few answers\"").unwrap();
        assert_eq!(declared.of(0), [("platform.community", "fair: few answers")]);
        assert!(declared.of(1).is_empty() && manifest::field("platform.community").is_none());
    }

    #[test]
    fn fields_are_said_of_both_or_of_one_and_marked_declared() {
        let text = "[both]\nmodel.name = \"m\"\n\"caps.batch\" = 8\n[b]\nparallel = { tp = 2, pp = 1 }\n";
        let declared = Declaration::parse("pair.toml", text).unwrap();
        let mut trace = TraceBuilder::new("run", "kineto").finish();
        declared.apply(0, &mut trace).unwrap();
        assert_eq!((trace.manifest.value("model.name"), trace.manifest.value("parallel.tp")), (Some("m"), None));
        declared.apply(1, &mut trace).unwrap();
        let said = trace.manifest.get("parallel.tp").unwrap();
        assert_eq!((said.value.as_str(), said.provenance), ("2", Provenance::Declared));
        assert_eq!(trace.manifest.value("caps.batch"), Some("8"));
    }

    /// Eight ranks of tensor parallelism passed for a job of four.
    #[test]
    fn parallel_sizes_are_those_of_the_job() {
        let of = |text: &str| {
            let mut builder = TraceBuilder::new("run.json", "kineto");
            builder.manifest("parallel.world_size", "4", Provenance::Observed);
            Declaration::parse("d.toml", text).unwrap().apply(0, &mut builder.finish())
        };
        for fits in [
            "[both]\n\"parallel.tp\" = 4",
            "[both]\n\"parallel.tp\" = 2\n\"parallel.dp\" = 2\n\"parallel.pp\" = 1",
            "[both]\n\"parallel.tp\" = 2",
        ] {
            assert!(of(fits).is_ok(), "{fits}");
        }
        for wrong in [
            "[both]\n\"parallel.tp\" = 8",
            "[both]\n\"parallel.tp\" = 3",
            "[both]\n\"parallel.tp\" = 1\n\"parallel.dp\" = 1\n\"parallel.pp\" = 1",
        ] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("shows a job of 4"), "{error}");
        }
    }

    /// K8: 16 tokens were taken for prompts of which one of 1 049 is read, and 77 777 where attention has 559 keys.
    #[test]
    fn k8_a_length_of_prompts_is_one_that_the_steps_can_have() {
        let run = |label: &str, shapes: Option<&str>| {
            let mut script = Script::default();
            for at in (0..6).map(|step| 1_000 + step * 100) {
                script.host(Category::UserRange, label, (at, at + 90));
                if let Some(shapes) = shapes {
                    script.operator("aten::scaled_dot_product_attention", (at + 1, at + 9), shapes, "[]");
                }
                script.launch((at + 2, at + 8), "flash_fwd_kernel", (at + 10, at + 60));
            }
            script.analyze()
        };
        let vllm = run("execute_context_1(1049)_generation_31(31)", None);
        let whole = run("forward", Some("[[16,16,559,64],[16,16,559,64],[16,16,559,64]]"));
        let say = |length: &str, (trace, analysis): &(Trace, Analysis)| {
            let text = format!("[both]\n\"workload.prompt_len\" = \"{length}\"");
            Declaration::parse("pair.toml", &text).unwrap().fits_the_prompts(0, trace, analysis)
        };
        for fits in ["1000", "1049", "4096", "16…1049"] {
            say(fits, &vllm).unwrap();
        }
        let error = say("16", &vllm).unwrap_err().to_string();
        assert!(error.contains("= '16'") && error.contains("reads a prompt of 1049 tokens"), "{error}");
        say("559", &whole).unwrap();
        let error = say("77777", &whole).unwrap_err().to_string();
        assert!(error.contains("attends to at most 559 tokens"), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (text, said) in [
            ("[c]\nmodel.name = \"m\"", "'c'"),
            ("both = 1", "'both'"),
            ("[both]\nmodel.nmae = \"m\"", "'model.nmae'"),
            ("[a]\nmodel.name = [1]", "'model.name'"),
            ("[a]\nmodel.name = \" \"", "empty"),
            ("[a", "pair.toml"),
            ("[both]\nmodel.name = \"m\"\n[a]\nmodel.name = \"n\"", "'m' and as 'n'"),
        ] {
            let error = Declaration::parse("pair.toml", text).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("pair.toml"), "{error}");
        }
        let mut builder = TraceBuilder::new("run.json", "kineto");
        builder.manifest("precision.weights", "bf16", Provenance::Observed);
        let mut trace = builder.finish();
        let say = |value: &str| Declaration::parse("p", &format!("[a]\nprecision.weights = \"{value}\"")).unwrap();
        say("bfloat16").apply(0, &mut trace).unwrap();
        assert_eq!(trace.manifest.value("precision.weights"), Some("bf16"), "what is seen stays");
        let error = say("fp8").apply(0, &mut trace).unwrap_err().to_string();
        assert!(error.contains("fp8") && error.contains("bf16") && error.contains("run.json"), "{error}");
    }
}
