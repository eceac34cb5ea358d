//! Which metric of which engine means what.

use std::sync::LazyLock;

use serde::Deserialize;

use super::exposition::Page;

const ENGINES: &str = include_str!("engines.toml");

/// What is shown of a serving engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Requests in the batch.
    Running,
    /// Requests that wait for their turn.
    Waiting,
    /// Share of the KV cache in use, the fullest of several.
    KvUse,
    /// Requests that were put back for want of cache.
    Preemptions,
    /// Tokens of prompts that were read.
    Prompt,
    /// Tokens that were generated.
    Generated,
    /// Time to the first token, a histogram in seconds.
    FirstToken,
    /// Time between two tokens, a histogram in seconds.
    OutputToken,
}

/// One engine's names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// What it is called.
    pub name: String,
    running: Vec<String>,
    waiting: Vec<String>,
    kv_use: Vec<String>,
    preemptions: Vec<String>,
    prompt: Vec<String>,
    generated: Vec<String>,
    first_token: Vec<String>,
    output_token: Vec<String>,
}

impl Engine {
    /// Its names for a quantity, the newest first.
    pub fn metrics(&self, quantity: Quantity) -> &[String] {
        match quantity {
            Quantity::Running => &self.running,
            Quantity::Waiting => &self.waiting,
            Quantity::KvUse => &self.kv_use,
            Quantity::Preemptions => &self.preemptions,
            Quantity::Prompt => &self.prompt,
            Quantity::Generated => &self.generated,
            Quantity::FirstToken => &self.first_token,
            Quantity::OutputToken => &self.output_token,
        }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        [&self.running, &self.waiting, &self.kv_use, &self.preemptions, &self.prompt, &self.generated]
            .into_iter()
            .chain([&self.first_token, &self.output_token])
            .flatten()
    }
}

fn engines() -> &'static [Engine] {
    #[derive(Deserialize)]
    struct File {
        engine: Vec<Engine>,
    }
    static READ: LazyLock<Vec<Engine>> =
        LazyLock::new(|| toml::from_str::<File>(ENGINES).map(|file| file.engine).unwrap_or_default());
    &READ
}

/// Names of the engines.
pub fn names() -> Vec<&'static str> {
    engines().iter().map(|engine| engine.name.as_str()).collect()
}

/// Whether a metric of this name is read.
pub fn wanted(name: &str) -> bool {
    engines().iter().flat_map(Engine::all).any(|known| known == name)
}

/// The engine whose metrics a page holds; that of most where it holds several.
pub fn of(page: &Page) -> Option<&'static Engine> {
    let held = |engine: &Engine| engine.all().filter(|name| page.holds(name)).count();
    engines().iter().max_by_key(|engine| held(engine)).filter(|engine| held(engine) > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_names_are_read_and_each_belongs_to_one_engine() {
        assert_eq!(names(), ["vLLM", "SGLang", "TensorRT-LLM"]);
        let mut all: Vec<&String> = engines().iter().flat_map(Engine::all).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(wanted("vllm:num_requests_running") && !wanted("vllm:num_requests"));
    }
}
